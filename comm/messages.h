#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/result.h"
#include "comm/attendance.h"
#include "comm/backend.h"
#include "comm/fair_mutex.h"
#include "comm/operation.h"
#include "comm/work_state.h"

namespace rankrun::comm {

// The point-to-point messages of one group: those to other ranks through the
// backend, those of this rank to itself in memory. Ranks are group ranks.
// Thread: any.  Lifetime: `backend` outlives it.
class Messages {
 public:
  struct Message {
    Operation operation;  // for errors
    Envelope envelope;
    std::optional<int> peer;  // nothing: from anyone
    TimePoint since;
    std::chrono::milliseconds timeout;
  };
  // Tells an error in full and, unless it is kInvalid, breaks the group.
  using Failed = std::function<Error(const Message& message, Error error)>;

  // `to_global` gives a member's global rank.
  Messages(Backend& backend, int group_rank, std::function<int(int)> to_global, DeathWatch deaths,
           Failed failed);
  // Ends what is under way with an error.
  ~Messages();

  // Waits until it is over; returns the sender's global rank.
  Result<int> Move(const Message& message, Block data);
  // The state of what it returns learns the end, from Progress. A message of this
  // rank to itself is copied, so that it is over at once.
  Result<std::shared_ptr<WorkState>> Start(const Message& message, Block data);

  // Moves on what was started, waits a little for it; whether something is left.
  // Thread: one.
  bool Progress();

  // After the group has broken: no receive of this rank from itself is met any more.
  void EndOwn();

 private:
  struct Pending {
    Message message;
    std::unique_ptr<Transfer> transfer;
    std::shared_ptr<WorkState> state;
  };
  struct Parcel {  // of this rank to itself
    Envelope envelope;
    std::vector<std::byte> data;
  };
  struct OwnReceive {
    Message message;
    Block data;
    std::shared_ptr<WorkState> state;
  };
  struct Ended {
    Pending pending;
    Result<void> result;
  };

  Result<std::unique_ptr<Transfer>> StartTransfer(const Message& message, Block data);
  bool StartOwn(const Message& message, Block data, const std::shared_ptr<WorkState>& state);
  bool ReceiveOwn(const Message& message, Block data, const std::shared_ptr<WorkState>& state);
  Result<void> Unpack(const Parcel& parcel, const Message& message, Block data) const;
  std::vector<Ended> TakeEnded(std::chrono::milliseconds slice);
  Error TimedOut(const Message& message, Transfer* transfer) const;
  std::optional<Error> WhyOver(const Message& message) const;
  void FinishOwnThatIsOver();

  Backend& backend_;
  const int group_rank_;
  const std::function<int(int)> to_global_;
  const DeathWatch deaths_;
  const Failed failed_;
  const std::shared_ptr<Attendance> attendance_ = std::make_shared<Attendance>();
  std::atomic<int> callers_ = 0;  // in Move, where they move all on
  Duration nap_;                  // the next one of Progress
  FairMutex mutex_;               // guards all below and the calls of transfers
  bool ended_ = false;            // nobody sends to this rank itself any more
  std::list<Pending> pending_;
  std::deque<Parcel> own_;
  std::list<OwnReceive> own_receives_;
};

}  // namespace rankrun::comm
