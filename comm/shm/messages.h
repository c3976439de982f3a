#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/shm/inbox.h"
#include "comm/shm/outbox.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm {

// Point-to-point messages through shared memory. Whoever tests or waits for one
// moves all of them on, and so does who waits in a collective: two ranks that
// send to each other first, or wait for different things, never lock up.
// A small message is over when it is sent; a larger one when its last byte is in
// the channel. Unlike Waiter, no error is told to the other ranks.
// Thread: any; transfers as Transfer says.
// Lifetime: the segment outlives it. It outlives transfers that are not over.
class ShmMessages final : public Sideline {
 public:
  ShmMessages(const Segment& segment, DeathWatch deaths);
  ~ShmMessages() override;

  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope);
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope);
  bool Move() override;

  // All that is under way is over with this error (kTimeout as kCancelled), and so
  // is what is started. No block is touched afterwards.
  void Abort(const Error& error);

 private:
  class SendTransfer;
  class RecvTransfer;

  // What a transfer knows about itself.
  struct Wanted {
    Moving& moving;
    std::optional<int> peer;  // nothing: anyone
    bool send;
    TimePoint began;
    TimePoint next_look;   // for why it may never be over
    bool patient = false;  // it has taken long: no use in spinning
  };

  bool Test(Wanted& wanted);
  Result<void> Wait(Wanted& wanted, std::chrono::milliseconds timeout);
  bool Hasten(const Wanted& wanted, TimePoint deadline);
  bool Sleep(const Wanted& wanted, Duration limit);
  void Look(Wanted& wanted);
  bool Needs(const Wanted& wanted, int rank) const;
  void End(Wanted& wanted, Error error);
  void Drop(Wanted& wanted);
  Error TimedOut(const Wanted& wanted, std::chrono::milliseconds timeout) const;
  bool MoveLocked();
  Bell& bell(int rank) const;
  ChannelPlace Place(int sender, int receiver) const;
  std::string NameOf(int rank) const;

  const Segment& segment_;
  const MessageLayout layout_;
  const Waiter waiter_;  // looks only
  std::mutex mutex_;     // guards what follows and what it refers to
  Inbox inbox_;
  Outbox outbox_;
  std::optional<Error> aborted_;
};

}  // namespace rankrun::comm
