#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/async/attendance.h"
#include "comm/async/fair_mutex.h"
#include "comm/async/work_state.h"
#include "comm/core/backend.h"
#include "comm/core/operation.h"

namespace rankrun::comm {

// Point-to-point messages of one process group. Messages to other ranks go
// through the backend. Messages of this rank to itself ("own" messages) stay in
// memory. Ranks are group ranks.
// Thread: any.  Lifetime: `backend` outlives it.
class Messages {
 public:
  struct Message {
    Operation operation;  // for error messages
    bool is_send;
    Envelope envelope;
    std::optional<int> peer;  // none: a receive from any rank
    TimePoint since;          // start of the call
    // Counts from `since` in Move, otherwise from the first wait for the state.
    std::chrono::milliseconds timeout;
  };
  // Returns the full text of an error. Breaks the group unless it is kInvalid.
  using Failed = std::function<Error(const Message& message, Error error)>;

  // `to_global` maps a group rank to the global rank.
  Messages(Backend& backend, int group_rank, std::function<int(int)> to_global, DeathWatch deaths,
           Failed failed);
  // Finishes the messages under way with an error.
  ~Messages();

  // Sends or receives one message. Returns the global rank of the sender.
  Result<int> Move(const Message& message, Block data);
  // Starts a message; Progress finishes the returned state. A send of this rank
  // to itself copies the data and is finished on return.
  Result<std::shared_ptr<WorkState>> Start(const Message& message, Block data);

  // Advances the started messages and waits for them briefly. Returns whether
  // any is left.
  // Thread: one.
  bool Progress();

  // Finishes the receives of this rank from itself, because the group has
  // broken.
  void EndOwn();

 private:
  struct Pending {
    Message message;
    std::unique_ptr<Transfer> transfer;
    std::shared_ptr<WorkState> state;
  };
  struct SelfMessage {  // sent, not received yet
    Envelope envelope;
    std::vector<std::byte> data;
  };
  struct OwnReceive {
    Message message;
    Block data;
    std::shared_ptr<WorkState> state;
  };
  struct CompletedMessage {
    Pending pending;
    Result<void> result;
  };

  Result<std::unique_ptr<Transfer>> StartTransfer(const Message& message, Block data);
  Result<int> AwaitOwn(const Message& message, WorkState& state);
  bool StartOwn(const Message& message, Block data, const std::shared_ptr<WorkState>& state);
  bool ReceiveOwn(const Message& message, Block data, const std::shared_ptr<WorkState>& state);
  Result<void> Unpack(const SelfMessage& self_message, const Message& message, Block data) const;
  std::vector<CompletedMessage> TakeEnded(std::chrono::milliseconds slice) EXCLUDES(mutex_);
  Error TimedOut(const Message& message, Transfer* transfer) const REQUIRES(mutex_);
  std::optional<Error> WhyOver(const OwnReceive& receive) const REQUIRES(mutex_);
  void FinishOwnThatIsOver();

  Backend& backend_;
  const int group_rank_;
  const std::function<int(int)> to_global_;
  const DeathWatch deaths_;
  const Failed failed_;
  const std::shared_ptr<Attendance> attendance_ = std::make_shared<Attendance>();
  std::atomic<int> callers_ = 0;           // threads in Move; they advance all transfers
  Duration nap_;                           // next pause of Progress
  FairMutex mutex_;                        // also held for every call of a transfer
  bool ended_ GUARDED_BY(mutex_) = false;  // EndOwn was called
  std::list<Pending> pending_ GUARDED_BY(mutex_);
  std::deque<SelfMessage> own_ GUARDED_BY(mutex_);
  std::list<OwnReceive> own_receives_ GUARDED_BY(mutex_);  // waiting for a send
};

}  // namespace rankrun::comm
