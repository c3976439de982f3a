#include "comm/shm/wait.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/format.h"
#include "comm/shm/futex.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kSpins = 1000;
constexpr int kMinSpins = 16;
// About as long as a switch to another process and back.
constexpr int kSpinsPerSwitch = 100;
constexpr int kYields = 200;
constexpr int kYieldsPerMove = 8;
// A counter that arrives after this few yields was delayed by this rank's
// spinning.
constexpr int kPromptYields = 4;
constexpr unsigned kYieldsPerTrial = 64;
// The documented limit is 5 ms, and the kernel wakes a sleeper a little late.
constexpr milliseconds kSlice{4};
// Used without fences, because a writer may then miss a sleeper, and while
// messages may move.
constexpr microseconds kShortSlice{200};

// Returns whether there is a processor for each rank with the CPU set of this
// one.
bool HasProcessorForEach(const Segment& segment) {
  const RankArea& mine = segment.area(segment.rank());
  int32_t sharing = 0;
  for (int r = 0; r < segment.world_size(); ++r) {
    if (segment.area(r).processors_hash == mine.processors_hash) sharing += 1;
  }
  return sharing <= mine.processors;
}

}  // namespace

Waiter::Waiter(const Segment& segment, DeathWatch deaths, ProgressHook* progress_hook)
    : segment_(segment),
      mine_(segment.area(segment.rank())),
      deaths_(deaths),
      progress_hook_(progress_hook),
      fences_(RegisterForFences()) {
  max_spins_ = HasProcessorForEach(segment) ? kSpins : 0;
  spins_ = max_spins_;
}

void Waiter::ShowProcessor() {
  int processor = sched_getcpu();
  if (processor == processor_) return;
  processor_ = processor;
  mine_.processor.store(1 + processor, std::memory_order_relaxed);
}

void Waiter::Wake(const std::atomic<uint64_t>& word) { FutexWakeAll(FutexOf(word)); }

bool Waiter::AwaitLong(int rank, const std::atomic<uint64_t>& word, uint64_t value,
                       const WaitTarget& target) {
  auto come = [&] { return HasReached(word, value); };
  bool more = false;
  // The scheduler would divide the processor equally between yields here and the awaited
  // rank. No fence: a writer on this processor sees the sleeper; one that has just moved
  // to another may miss it, and then the slice ends the sleep.
  bool yields = !awaits_hosts_ || !crowded() || !SharesProcessor(rank);
  Duration first = fences_ ? Duration(kSlice) : Duration(kShortSlice);
  if (!yields && Sleep(rank, word, value, first, false)) return true;
  for (int i = 0; yields && i < kYields && !segment_.failed() && !deaths_.has_death(); ++i) {
    // A rank on another processor may arrive before a yield would return; spin
    // first.
    bool elsewhere = crowded() && !SharesProcessor(rank);
    for (int j = 0; elsewhere && j < kSpinsPerSwitch && !come(); ++j) Pause();
    if (elsewhere && come()) return true;
    sched_yield();
    if (come()) {
      if (i < kPromptYields) AdaptSpins();
      return true;
    }
    if (i % kYieldsPerMove == 0) more = progress_hook_ != nullptr && progress_hook_->Move();
  }
  TimePoint began = MonotonicClock().Now();
  if (!std::exchange(waited_long_, true)) began_ = began;
  for (;;) {
    auto ended = FindEndOrTimeout(target, began);
    if (come()) return true;  // possibly the last write of a rank that has ended
    if (ended && (ended->code == ErrorCode::kInvalid || GiveUp(*ended, word, value))) {
      error_ = std::move(ended);
      return false;
    }
    Duration left = began_ + timeout_ - MonotonicClock().Now();
    Duration slice = more || !fences_ ? Duration(kShortSlice) : Duration(kSlice);
    if (Sleep(rank, word, value, std::clamp<Duration>(left, microseconds(10), slice), fences_)) {
      return true;
    }
    more = progress_hook_ != nullptr && progress_hook_->Move();
  }
}

// A yield that was prompt shows that the other rank may have needed this processor. Now and then
// all spins are tried again: the ranks may run on two processors by now.
void Waiter::AdaptSpins() {
  prompt_yields_ += 1;
  if (prompt_yields_ % kYieldsPerTrial == 0) {
    spins_ = max_spins_;
  } else if (spins_ > kMinSpins) {
    spins_ /= 2;
  }
}

// A rank concludes a call if it sees no claim after its own last write. This rank sees that
// write after the fence, or the other one sees the claim and waits. So both fail, or neither.
bool Waiter::GiveUp(const Error& error, const std::atomic<uint64_t>& word, uint64_t value) const {
  const ErrorLine& errors = segment_.errors();
  if (!errors.Claim()) return !errors.AwaitDecision() || errors.failed();
  if (fences_) PassFence();
  if (HasReached(word, value)) {
    errors.DropClaim();
    return false;
  }
  errors.PublishClaimed(error);
  return true;
}

// Sleeps until the counter may have changed, or `limit`. Returns whether it has
// reached `value`.
bool Waiter::Sleep(int rank, const std::atomic<uint64_t>& word, uint64_t value, Duration limit,
                   bool passes_fence) {
  std::atomic<uint32_t>& sleepers = segment_.area(rank).sleepers;
  sleepers.fetch_add(1);
  // After the fence the writer sees a sleeper, or this rank sees its write.
  if (passes_fence) PassFence();
  uint64_t seen = word.load(std::memory_order_acquire);
  if (!HasReached(seen, value)) FutexWait(FutexOf(word), static_cast<uint32_t>(seen), limit);
  sleepers.fetch_sub(1);
  return HasReached(word, value);
}

std::optional<Error> Waiter::FindEndOrTimeout(const WaitTarget& target, TimePoint began) const {
  auto end = FindEnd([&](int rank) { return target.Needs(rank); }, began_);
  TimePoint now = MonotonicClock().Now();
  Duration waited = now - began_;
  // Asked last but reported first: a rank that refused the call, or that saw
  // the refusal, may have left or failed since then.
  auto failure = target.CheckFailure(waited);
  if (failure && failure->code == ErrorCode::kInvalid) return failure;
  if (end) return end;
  if (failure) return failure;
  if (waited < timeout_) return std::nullopt;
  return Error{ErrorCode::kTimeout,
               target.Missing(now - began) + ", waited " + FormatSeconds(waited)};
}

std::optional<Error> Waiter::FindEnd(const std::function<bool(int)>& needs, TimePoint began) const {
  if (auto told = segment_.errors().PublishedIn(number_)) return told;
  if (deaths_.has_death()) return deaths_.ErrorSince(began);
  // In this order, because a rank says that it leaves before it ends.
  std::vector<int> dead = segment_.Dead();
  std::vector<int> left = segment_.Left();
  auto has_left = [&](int rank) { return std::find(left.begin(), left.end(), rank) != left.end(); };
  auto gone = std::find_if(left.begin(), left.end(), needs);
  for (int rank : dead) {
    // `gone` may have left because of a death that another group has noticed.
    if (!has_left(rank) && (needs(rank) || gone != left.end())) return Lost(rank, began);
  }
  if (gone == left.end()) return std::nullopt;
  // Again: a rank that has failed publishes why, then leaves.
  if (auto told = segment_.errors().PublishedIn(number_)) return told;
  return Error{ErrorCode::kPeerLost, segment_.NamesOf({&*gone, 1}) + " has left the group"};
}

std::optional<Error> Waiter::FindFailure(TimePoint began) const {
  if (auto told = segment_.errors().Published()) return told;
  if (deaths_.has_death()) return deaths_.ErrorSince(began);
  std::vector<int> dead = segment_.Dead();
  std::vector<int> left = segment_.Left();  // before they ended
  for (int rank : dead) {
    if (std::find(left.begin(), left.end(), rank) == left.end()) return Lost(rank, began);
  }
  return std::nullopt;
}

Error Waiter::Lost(int rank, TimePoint began) const {
  // Prefer the agent's report, which contains the signal.
  if (AwaitDeathMessage(deaths_)) return deaths_.ErrorSince(began);
  const int one[] = {rank};
  const RankArea& area = segment_.area(rank);
  const std::string who = segment_.NamesOf(one) + " (pid " + std::to_string(area.pid) + ")";
  const int code = area.exit_code.load(std::memory_order_acquire);
  if (code == 0) return Error{ErrorCode::kPeerLost, who + " died"};
  return Error{ErrorCode::kPeerLost,
               who + " ended without Destroy, with exit code " + std::to_string(code - 1)};
}

Error Waiter::Fail(Error error) const {
  segment_.errors().Publish(error);
  return error;
}

}  // namespace rankrun::comm::shm
