#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/core/backend.h"
#include "comm/shm/inbox.h"
#include "comm/shm/outbox.h"
#include "comm/shm/segment.h"
#include "comm/shm/wait.h"

namespace rankrun::comm::shm {

// Point-to-point messages through shared memory. Testing or waiting for one
// message moves all of them, and so does waiting in a collective. So two ranks
// that both send first, or wait for different operations, never deadlock. A
// send is over when its last byte is in the channel; for a small message that
// is at once. Unlike in Waiter, time-outs are not published to the other ranks.
// Thread: any; for a transfer see Transfer.
// Lifetime: the segment outlives it. It outlives transfers that are not over.
class Messages final : public ProgressHook {
 public:
  Messages(const Segment& segment, DeathWatch deaths);
  ~Messages() override;

  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope);
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope);
  bool Move() override;

  // Ends all pending transfers, and all later ones, with this error (kTimeout
  // as kCancelled). No block is touched afterwards.
  void Abort(const Error& error);

 private:
  class SendTransfer;
  class RecvTransfer;

  struct TransferInfo {
    PendingTransfer& transfer;
    std::optional<int> peer;  // no value: any rank
    bool send;
    TimePoint began;
    TimePoint next_check;  // for an ended peer or group
    bool patient = false;  // has taken long; do not spin any more
  };

  bool Test(TransferInfo& info);
  Result<void> Wait(TransferInfo& info, std::chrono::milliseconds timeout);
  bool SpinUntilOver(const TransferInfo& info, TimePoint deadline);
  bool Sleep(const TransferInfo& info, Duration limit);
  void CheckForEnd(TransferInfo& info);
  bool Needs(const TransferInfo& info, int rank) const;
  void End(TransferInfo& info, Error error) REQUIRES(mutex_);
  void AbortLocked(const Error& error) REQUIRES(mutex_);
  void Drop(TransferInfo& info);
  Error TimedOut(const TransferInfo& info, std::chrono::milliseconds timeout) const;
  bool MoveLocked() REQUIRES(mutex_);
  Bell& bell(int rank) const;
  ChannelPlace Place(int sender, int receiver) const;
  std::string NameOf(int rank) const;

  const Segment& segment_;
  const MessageLayout layout_;
  const Waiter waiter_;  // only for its checks
  Mutex mutex_;          // also guards the state of all transfers
  Inbox inbox_ GUARDED_BY(mutex_);
  Outbox outbox_ GUARDED_BY(mutex_);
  std::optional<Error> aborted_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::shm
