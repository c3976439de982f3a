#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/pause.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/shm/segment.h"

namespace rankrun::comm::shm {

// Work that a rank continues while it waits for other ranks.
class ProgressHook {
 public:
  virtual ~ProgressHook() = default;
  // Moves data without waiting. Returns whether more may be possible soon (a short sleep then).
  virtual bool Move() = 0;
};

// Description of a wait, used when the wait takes long.
class WaitTarget {
 public:
  virtual ~WaitTarget() = default;
  // Returns the missing ranks as text: "rank 3 has not called AllReduce #12".
  // `still` is the duration of the present wait.
  virtual std::string Missing(Duration still) const = 0;
  // Returns whether the wait must fail if `rank` has ended.
  virtual bool Needs(int rank) const = 0;
  // Returns any other reason for the wait to fail. kInvalid ends this wait only, not the group.
  virtual std::optional<Error> CheckFailure(Duration waited) const = 0;
};

// Returns whether a counter, which may have wrapped, has reached `value`.
inline bool HasReached(uint64_t counter, uint64_t value) {
  return static_cast<int64_t>(counter - value) >= 0;
}
inline bool HasReached(const std::atomic<uint64_t>& counter, uint64_t value) {
  return HasReached(counter.load(std::memory_order_acquire), value);
}

// Waits for counters of other ranks. A waiting rank spins, then yields, then sleeps in slices, and
// between these checks whether a rank has died, failed or left. An error is published: all ranks
// fail with it. Thread: one at a time, two waiters of a segment at once. Lifetime: the segment and
// the progress hook outlive it.
class Waiter {
 public:
  Waiter(const Segment& segment, DeathWatch deaths, ProgressHook* progress_hook = nullptr);

  // Begins a call or a part of one. Its time-out counts from its first long wait.
  void Begin(const Call& call) {
    timeout_ = call.timeout;
    number_ = call.operation.number;
    awaits_hosts_ = call.awaits_hosts;
    waited_long_ = false;
    if (crowded()) ShowProcessor();
  }

  // Waits until a counter of `rank` has reached `value`. False: TakeError() has the cause.
  bool Await(int rank, const std::atomic<uint64_t>& word, uint64_t value,
             const WaitTarget& target) {
    if (HasReached(word, value)) return true;
    for (int i = 0; i < spins_; ++i) {
      Pause();
      if (!HasReached(word, value)) continue;
      spins_ = std::min(2 * spins_, max_spins_);
      return true;
    }
    return AwaitLong(rank, word, value, target);
  }

  // Awaits word_of(rank) of all other ranks, those on this processor first.
  bool AwaitOthers(const auto& word_of, uint64_t value, const WaitTarget& target) {
    auto await = [&](auto&& wanted) {
      for (int r = 0; r < segment_.world_size(); ++r) {
        if (r == segment_.rank() || !wanted(r)) continue;
        if (!Await(r, word_of(r), value, target)) return false;
      }
      return true;
    };
    if (crowded() && !await([this](int rank) { return SharesProcessor(rank); })) return false;
    return await([](int) { return true; });
  }

  // Sets `word`, a counter of this rank, and wakes the ranks that sleep on it.
  // A rank that sees the value also sees all earlier writes.
  void Publish(std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_release);
    // Needs no fence instruction: a rank that goes to sleep calls PassFence().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mine_.sleepers.load(std::memory_order_relaxed) != 0) Wake(word);
  }

  // Publishes the error for the whole group, unless one is published already.
  Error Fail(Error error) const;
  Error TakeError() { return *std::exchange(error_, std::nullopt); }

  // Returns why a wait since `began` must fail: the group, or a needed rank. By system calls.
  std::optional<Error> FindEnd(const std::function<bool(int)>& needs, TimePoint began) const;

  // As FindEnd, but only deaths of ranks count. Thread: any.
  std::optional<Error> FindFailure(TimePoint began) const;

  int spins() const { return spins_; }     // 0: ranks share processors
  bool fences() const { return fences_; }  // futex.h
  const DeathWatch& deaths() const { return deaths_; }

 private:
  bool AwaitLong(int rank, const std::atomic<uint64_t>& word, uint64_t value,
                 const WaitTarget& target);
  void AdaptSpins();
  // Publishes why the wait for `word` fails. False: the wait continues.
  bool GiveUp(const Error& error, const std::atomic<uint64_t>& word, uint64_t value) const;
  bool Sleep(int rank, const std::atomic<uint64_t>& word, uint64_t value, Duration limit,
             bool passes_fence);
  static void Wake(const std::atomic<uint64_t>& word);
  // Returns why a wait since `began` must fail, including its time-out.
  std::optional<Error> FindEndOrTimeout(const WaitTarget& target, TimePoint began) const;
  Error Lost(int rank, TimePoint began) const;
  bool crowded() const { return max_spins_ == 0; }
  void ShowProcessor();
  bool SharesProcessor(int rank) const {
    return segment_.area(rank).processor.load(std::memory_order_relaxed) == 1 + processor_;
  }

  const Segment& segment_;
  RankArea& mine_;
  const DeathWatch deaths_;
  ProgressHook* const progress_hook_;
  int max_spins_;  // 0: ranks share processors
  int spins_;      // reduced while the other rank seems to need this processor
  unsigned prompt_yields_ = 0;
  int processor_ = -1;  // last known processor of this rank, if crowded()
  bool fences_;         // PassFence() can be used
  bool waited_long_ = false;
  bool awaits_hosts_ = false;
  std::chrono::milliseconds timeout_{0};
  uint64_t number_ = ~uint64_t{0};  // of the call; at first, errors in all calls count
  TimePoint began_{};               // start of the operation's first long wait, if waited_long_
  std::optional<Error> error_;
};

}  // namespace rankrun::comm::shm
