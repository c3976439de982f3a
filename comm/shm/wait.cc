#include "comm/shm/wait.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/cpus.h"
#include "base/format.h"
#include "comm/shm/futex.h"

namespace rankrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSpins = 1000;
constexpr int kLeastSpins = 16;
constexpr int kYields = 200;
constexpr int kYieldsPerMove = 8;
// What comes after so few was held up by spinning.
constexpr int kPromptYields = 4;
// The limit is 5 ms, and the kernel wakes nobody on the dot.
constexpr milliseconds kSlice{4};
// Without fences a sleeper may be missed, and sleeps so long for nothing; also
// while there is something to move.
constexpr microseconds kShortSlice{200};
// How long the agent takes to say how a process has ended.
constexpr milliseconds kForTheWord{20};

}  // namespace

Waiter::Waiter(const Segment& segment, DeathWatch deaths, Sideline* sideline)
    : segment_(segment),
      mine_(segment.area(segment.rank())),
      deaths_(deaths),
      sideline_(sideline),
      fences_(RegisterForFences()) {
  const auto cpus = AllowedCpus();
  const bool enough = cpus && cpus->size() >= static_cast<std::size_t>(segment.world_size());
  most_spins_ = enough ? kSpins : 0;
  spins_ = most_spins_;
}

void Waiter::Wake(const std::atomic<uint64_t>& word) { FutexWakeAll(FutexOf(word)); }

bool Waiter::AwaitLong(int rank, const std::atomic<uint64_t>& word, uint64_t value,
                       const Awaited& awaited) {
  const auto come = [&] { return word.load(std::memory_order_acquire) >= value; };
  bool more = false;
  for (int i = 0; i < kYields && !segment_.failed() && !deaths_.told(); ++i) {
    sched_yield();
    if (come()) {
      if (i < kPromptYields && spins_ > kLeastSpins) spins_ /= 2;
      return true;
    }
    if (i % kYieldsPerMove == 0) more = sideline_ != nullptr && sideline_->Move();
  }
  if (!std::exchange(late_, true)) began_ = MonotonicClock().Now();
  for (;;) {
    auto ended = Look(awaited);
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
  if (seen < value) FutexWait(FutexOf(word), static_cast<uint32_t>(seen), limit);
  sleepers.fetch_sub(1);
  return word.load(std::memory_order_acquire) >= value;
}

std::optional<Error> Waiter::Look(const Awaited& awaited) const {
  if (auto end = LookForEnd([&](int rank) { return awaited.Needs(rank); }, began_)) return end;
  const Duration waited = MonotonicClock().Now() - began_;
  if (auto doubt = awaited.Doubt(waited)) return doubt;
  if (waited < timeout_) return std::nullopt;
  return Error{ErrorCode::kTimeout, awaited.Missing() + ", waited " + FormatSeconds(waited)};
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
  const TimePoint now = MonotonicClock().Now();
  const TimePoint far = now + std::chrono::hours(1);
  if (deaths_.NextLook(far) < far) {  // there is an agent, who knows the signal
    deaths_.SleepUntil(now + kForTheWord);
    if (deaths_.told()) return deaths_.Ended(began);
  }
  const int one[] = {rank};
  return Error{ErrorCode::kPeerLost, segment_.NamesOf(one) + " (pid " +
                                         std::to_string(segment_.area(rank).pid) + ") died"};
}

Error Waiter::Fail(Error error) const {
  segment_.TellError(error);
  return error;
}

}  // namespace rankrun::comm
