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
#include "base/death_watch.h"
#include "base/result.h"
#include "comm/shm/segment.h"

namespace rankrun::comm {

// What a rank moves on while it waits for something else.
class Sideline {
 public:
  virtual ~Sideline() = default;
  // Never waits. Whether there may be more to move soon: then nobody sleeps long.
  virtual bool Move() = 0;
};

// What is waited for, asked when it takes long.
class Awaited {
 public:
  virtual ~Awaited() = default;
  // Who has not come, in words: "rank 3 has not come to AllReduce #12". `still`:
  // for how long what is waited for last has not come.
  virtual std::string Missing(Duration still) const = 0;
  // Whether the wait is lost if this rank has ended.
  virtual bool Needs(int rank) const = 0;
  // Another reason why it will not come to a good end. kInvalid ends this wait
  // alone, and not the group.
  virtual std::optional<Error> Doubt(Duration waited) const = 0;
};

// Whether a counter, which may have wrapped, is at `value` or beyond.
inline bool HasReached(uint64_t counter, uint64_t value) {
  return static_cast<int64_t>(counter - value) >= 0;
}
inline bool HasReached(const std::atomic<uint64_t>& counter, uint64_t value) {
  return HasReached(counter.load(std::memory_order_acquire), value);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// How a rank waits for words of others: it spins, yields the processor, then
// sleeps in slices and looks whether somebody has died, failed or left.
// An error ends the group: it is told to all ranks, and all end with it.
// Thread: one at a time; two of one segment may wait at once.
// Lifetime: the segment and the sideline outlive it.
class Waiter {
 public:
  Waiter(const Segment& segment, DeathWatch deaths, Sideline* sideline = nullptr);

  // At the beginning of each operation. The time counts from its first long wait.
  void Begin(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    late_ = false;
    if (crowded()) ShowProcessor();
  }

  // Waits until a word of `rank` has reached `value`. False: TakeError() says why.
  bool Await(int rank, const std::atomic<uint64_t>& word, uint64_t value, const Awaited& awaited) {
    if (HasReached(word, value)) return true;
    for (int i = 0; i < spins_; ++i) {
      Pause();
      if (!HasReached(word, value)) continue;
      spins_ = std::min(2 * spins_, most_spins_);
      return true;
    }
    return AwaitLong(rank, word, value, awaited);
  }

  // The same for word_of(rank) of each other rank. If ranks share processors,
  // first for those that need the one of this rank.
  bool AwaitOthers(const auto& word_of, uint64_t value, const Awaited& awaited) {
    const auto await = [&](auto&& wanted) {
      for (int r = 0; r < segment_.world_size(); ++r) {
        if (r == segment_.rank() || !wanted(r)) continue;
        if (!Await(r, word_of(r), value, awaited)) return false;
      }
      return true;
    };
    if (crowded() && !await([this](int rank) { return SharesProcessor(rank); })) return false;
    return await([](int) { return true; });
  }

  // Shows all who wait for `word`, one of this rank, that it is `value` now.
  // What was written before can be read by who has seen it.
  void Publish(std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_release);
    // No fence: who goes to sleep has all processors pass one.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mine_.sleepers.load(std::memory_order_relaxed) != 0) Wake(word);
  }

  // Ends the group with this error, unless it has ended already.
  Error Fail(Error error) const;
  Error TakeError() { return *std::exchange(error_, std::nullopt); }

  // Why a wait that began then will not come to a good end: the group has
  // ended, or a rank that it needs. System calls.
  std::optional<Error> LookForEnd(const std::function<bool(int)>& needs, TimePoint began) const;

  int spins() const { return spins_; }     // 0: ranks share processors
  bool fences() const { return fences_; }  // futex.h
  const DeathWatch& deaths() const { return deaths_; }

 private:
  bool AwaitLong(int rank, const std::atomic<uint64_t>& word, uint64_t value,
                 const Awaited& awaited);
  bool Sleep(int rank, const std::atomic<uint64_t>& word, uint64_t value, Duration limit);
  static void Wake(const std::atomic<uint64_t>& word);
  // Why to give up a wait that began then, if there is a reason.
  std::optional<Error> Look(const Awaited& awaited, TimePoint began) const;
  Error Lost(int rank, TimePoint began) const;
  bool crowded() const { return most_spins_ == 0; }
  void ShowProcessor();
  bool SharesProcessor(int rank) const {
    return segment_.area(rank).processor.load(std::memory_order_relaxed) == 1 + processor_;
  }

  const Segment& segment_;
  RankArea& mine_;
  const DeathWatch deaths_;
  Sideline* const sideline_;
  int most_spins_;      // 0: ranks share processors
  int spins_;           // less while the other rank seems to need this processor
  int processor_ = -1;  // that this rank was last seen on, if crowded()
  bool fences_;         // the kernel can have all processors pass a fence
  bool late_ = false;
  std::chrono::milliseconds timeout_{0};
  TimePoint began_{};  // of the operation's first long wait, if late_
  std::optional<Error> error_;
};

}  // namespace rankrun::comm
