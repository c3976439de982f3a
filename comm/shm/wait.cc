#include "comm/shm/wait.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/format.h"
#include "comm/shm/futex.h"

namespace rankrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSpins = 1000;
constexpr int kLeastSpins = 16;
// About as long as it takes to switch to another process and back.
constexpr int kSpinsOfASwitch = 100;
constexpr int kYields = 200;
constexpr int kYieldsPerMove = 8;
// What comes after so few was held up by spinning.
constexpr int kPromptYields = 4;
// The limit is 5 ms, and the kernel wakes nobody on the dot.
constexpr milliseconds kSlice{4};
// Without fences a sleeper may be missed, and sleeps so long for nothing; also
// while there is something to move.
constexpr microseconds kShortSlice{200};

// Of the ranks that may run where this one may, bound or not.
bool HasProcessorForEach(const Segment& segment) {
  const RankArea& mine = segment.area(segment.rank());
  int32_t sharing = 0;
  for (int r = 0; r < segment.world_size(); ++r) {
    if (segment.area(r).processors_hash == mine.processors_hash) sharing += 1;
  }
  return sharing <= mine.processors;
}

}  // namespace

Waiter::Waiter(const Segment& segment, DeathWatch deaths, Sideline* sideline)
    : segment_(segment),
      mine_(segment.area(segment.rank())),
      deaths_(deaths),
      sideline_(sideline),
      fences_(RegisterForFences()) {
  most_spins_ = HasProcessorForEach(segment) ? kSpins : 0;
  spins_ = most_spins_;
}

void Waiter::ShowProcessor() {
  const int processor = sched_getcpu();
  if (processor == processor_) return;
  processor_ = processor;
  mine_.processor.store(1 + processor, std::memory_order_relaxed);
}

void Waiter::Wake(const std::atomic<uint64_t>& word) { FutexWakeAll(FutexOf(word)); }

bool Waiter::AwaitLong(int rank, const std::atomic<uint64_t>& word, uint64_t value,
                       const Awaited& awaited) {
  const auto come = [&] { return HasReached(word, value); };
  bool more = false;
  for (int i = 0; i < kYields && !segment_.failed() && !deaths_.told(); ++i) {
    // Who runs elsewhere may come before this rank had its processor again.
    const bool elsewhere = crowded() && !SharesProcessor(rank);
    for (int j = 0; elsewhere && j < kSpinsOfASwitch && !come(); ++j) Pause();
    if (elsewhere && come()) return true;
    sched_yield();
    if (come()) {
      if (i < kPromptYields && spins_ > kLeastSpins) spins_ /= 2;
      return true;
    }
    if (i % kYieldsPerMove == 0) more = sideline_ != nullptr && sideline_->Move();
  }
  const TimePoint began = MonotonicClock().Now();
  if (!std::exchange(late_, true)) began_ = began;
  for (;;) {
    auto ended = Look(awaited, began);
    if (come()) return true;  // perhaps the last that was done by who has ended
    if (ended) {
      error_ = ended->code == ErrorCode::kInvalid ? ended : Fail(*std::move(ended));
      return false;
    }
    const Duration left = began_ + timeout_ - MonotonicClock().Now();
    const Duration slice = more || !fences_ ? Duration(kShortSlice) : Duration(kSlice);
    if (Sleep(rank, word, value, std::clamp<Duration>(left, microseconds(10), slice))) return true;
    more = sideline_ != nullptr && sideline_->Move();
  }
}

// Returns when the word has come, or may have changed, or after `limit`.
bool Waiter::Sleep(int rank, const std::atomic<uint64_t>& word, uint64_t value, Duration limit) {
  std::atomic<uint32_t>& sleepers = segment_.area(rank).sleepers;
  sleepers.fetch_add(1);
  // From here on its writer sees a sleeper, or this rank what it has written.
  if (fences_) PassFence();
  const uint64_t seen = word.load(std::memory_order_acquire);
  if (!HasReached(seen, value)) FutexWait(FutexOf(word), static_cast<uint32_t>(seen), limit);
  sleepers.fetch_sub(1);
  return HasReached(word, value);
}

std::optional<Error> Waiter::Look(const Awaited& awaited, TimePoint began) const {
  auto end = LookForEnd([&](int rank) { return awaited.Needs(rank); }, began_);
  const TimePoint now = MonotonicClock().Now();
  const Duration waited = now - began_;
  // Asked last and heard first: who has refused the call, or was told of that,
  // may have left or failed since.
  const auto doubt = awaited.Doubt(waited);
  if (doubt && doubt->code == ErrorCode::kInvalid) return doubt;
  if (end) return end;
  if (doubt) return doubt;
  if (waited < timeout_) return std::nullopt;
  return Error{ErrorCode::kTimeout,
               awaited.Missing(now - began) + ", waited " + FormatSeconds(waited)};
}

std::optional<Error> Waiter::LookForEnd(const std::function<bool(int)>& needs,
                                        TimePoint began) const {
  if (auto told = segment_.ToldError()) return told;
  if (deaths_.told()) return deaths_.Ended(began);
  for (const int rank : segment_.Left()) {
    if (!needs(rank)) continue;
    const int one[] = {rank};
    return Error{ErrorCode::kPeerLost, segment_.NamesOf(one) + " has left the group"};
  }
  for (const int rank : segment_.Dead()) {
    if (needs(rank)) return Lost(rank, began);
  }
  return std::nullopt;
}

Error Waiter::Lost(int rank, TimePoint began) const {
  if (AwaitWord(deaths_)) return deaths_.Ended(began);  // which has the signal
  const int one[] = {rank};
  return Error{ErrorCode::kPeerLost, segment_.NamesOf(one) + " (pid " +
                                         std::to_string(segment_.area(rank).pid) + ") died"};
}

Error Waiter::Fail(Error error) const {
  segment_.TellError(error);
  return error;
}

}  // namespace rankrun::comm
