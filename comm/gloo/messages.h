#pragma once

#include <gloo/context.h>

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/core/backend.h"
#include "comm/gloo/control.h"
#include "comm/gloo/copy_room.h"
#include "comm/gloo/failure_board.h"
#include "comm/gloo/wake_event.h"

namespace rankrun::comm::gloo {

// Messages between two ranks, in five steps on the control channel:
//
//   sender    sends an offer (tag, dtype, bytes; also the data, if short)
//   receiver  matches a receive; if sizes differ or the data is complete: end
//   receiver  posts the receive of the data, then: accept
//   sender    sends the data, then: sent
//   receiver  has the data, because both arrive in order: end
//
// So no data moves without a receive that fits. Without `end`, a sender could not
// know how its message ended, because Gloo cannot report whether a send is
// complete. A send of up to 64 KiB is over at once, and a copy of it takes the five
// steps, as long as the copies for its receiver have room in 1 MiB.
// Thread: any.  Lifetime: outlives its transfers.
class Messages {
 public:
  // Send or receive, under way or over.
  struct Message {
    bool is_send;
    std::byte* data;
    size_t bytes;
    Envelope envelope;
    std::optional<int> peer;  // receive from any rank: set when matched
    uint64_t id = 0;          // assigned by the sender
    bool matched = false;
    TimePoint began = {};
    bool is_copy = false;                     // nobody waits for it
    std::vector<std::byte> copied = {};       // `data` of a copy; outlives `buffer`
    std::unique_ptr<GlooBuffer> buffer = {};  // of the data, while it moves
    bool over = false;
    std::optional<Error> error = {};
  };

  Messages(const BackendConfig& config, std::shared_ptr<::gloo::Context> context, Control& control,
           FailureBoard& failure_board, WakeEvent& wake_event);

  std::unique_ptr<Transfer> Start(Message message);

  // Moves all messages, and asks the store why peers are lost, which may be
  // slow. Called by the monitor thread. Returns the latest time of the next
  // call.
  TimePoint Poll(TimePoint now);

  // Waits until the receivers have the copies, or are lost. The monitor thread
  // moves these. Logs a warning if the time has passed.
  void WaitForCopies(std::chrono::milliseconds timeout);

  // Ends all messages, and all later ones. Their blocks are not touched any
  // more. kTimeout, which is the time-out of a collective, becomes kCancelled.
  void Stop(const Error& why);

 private:
  class Handle;
  struct Offer {
    int peer;
    ControlMessage message;
  };
  struct Loss {
    TimePoint since;
    std::string why;
    std::optional<Error> error;  // set when the reason is known or no longer expected
  };
  using Open = std::list<std::shared_ptr<Message>>;  // shared with its Handle

  TimePoint MoveOn(TimePoint now);  // without waiting
  void FindLossReasons();
  bool Receive() REQUIRES(mutex_);
  void OnOffer(const Offer& offer) REQUIRES(mutex_);
  void OnAccept(int peer, const ControlMessage& message) REQUIRES(mutex_);
  void OnSent(int peer, const ControlMessage& message) REQUIRES(mutex_);
  void OnEnd(int peer, const ControlMessage& message) REQUIRES(mutex_);
  void Match(Message& receive, const Offer& offer) REQUIRES(mutex_);
  void Refuse(Message& receive, const Offer& offer) REQUIRES(mutex_);
  // Returns the copy that is sent instead, or null if the sender is to wait.
  std::shared_ptr<Message> CopyOf(const Message& send) REQUIRES(mutex_);
  void SendOffer(Message& send) REQUIRES(mutex_);
  std::shared_ptr<Message> Find(bool is_send, int peer, uint64_t id) const REQUIRES(mutex_);
  void CheckForLosses() REQUIRES(mutex_);
  const Loss* LossOf(const Message& message) REQUIRES(mutex_);
  const Loss* LossOf(int peer) REQUIRES(mutex_);
  void Lose(int peer, const std::string& why) REQUIRES(mutex_);
  void Finish(Message& message, std::optional<Error> error = {}) REQUIRES(mutex_);
  void RemoveOver() REQUIRES(mutex_);
  Error MismatchError(const Message& message, DType other, uint64_t other_bytes) const;

  const std::vector<int> global_ranks_;
  const DeathWatch deaths_;
  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  Control& control_;
  FailureBoard& failure_board_;
  WakeEvent& wake_event_;

  Mutex mutex_;  // also guards the messages in open_
  CondVar ended_;
  Open open_ GUARDED_BY(mutex_);                                // in the order started
  std::deque<Offer> unmatched_ GUARDED_BY(mutex_);              // in the order of arrival
  std::vector<std::optional<Loss>> losses_ GUARDED_BY(mutex_);  // by group rank
  CopyRoom copy_room_ GUARDED_BY(mutex_);
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  TimePoint last_progress_ GUARDED_BY(mutex_) = {};
  TimePoint next_check_ GUARDED_BY(mutex_) = {};
  std::optional<Error> stopped_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::gloo
