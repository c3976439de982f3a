#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace rankrun::comm::rpc {

// Right to poll, which one thread has at a time. A thread that carries out a task lends the
// right out: another thread may take it meanwhile; otherwise the lender takes it back.
// Thread: any.
class PollRight {
 public:
  // One taking or lending, unlike any other.
  using Ticket = uint64_t;

  // Returns the ticket of the thread that has taken the right, free or lent; nothing: another
  // thread has it.
  std::optional<Ticket> Take() {
    Ticket now = word_.load();
    if (StateIn(now) == kTaken) return std::nullopt;
    Ticket mine = Next(now, kTaken);
    if (!word_.compare_exchange_strong(now, mine)) return std::nullopt;
    return mine;
  }
  // The thread that has the right calls these two.
  void Release(Ticket mine) { word_.store(Next(mine, kFree)); }
  Ticket Lend(Ticket mine) {
    Ticket lent = Next(mine, kLent);
    word_.store(lent);
    return lent;
  }
  // Returns a new ticket of the lender; nothing: another thread has taken the right.
  std::optional<Ticket> TakeBack(Ticket lent) {
    Ticket mine = Next(lent, kTaken);
    if (!word_.compare_exchange_strong(lent, mine)) return std::nullopt;
    return mine;
  }

  // For a thread that watches: a ticket that stays the same while nothing changes.
  Ticket Look() const { return word_.load(); }
  static bool IsTaken(Ticket seen) { return StateIn(seen) == kTaken; }

 private:
  static constexpr uint64_t kFree = 0, kTaken = 1, kLent = 2, kStates = 4;

  static uint64_t StateIn(Ticket ticket) { return ticket % kStates; }
  static Ticket Next(Ticket ticket, uint64_t state) {
    return (ticket / kStates + 1) * kStates + state;
  }

  std::atomic<Ticket> word_ = kFree;
};

}  // namespace rankrun::comm::rpc
