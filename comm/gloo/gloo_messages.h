#pragma once

#include <gloo/context.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "comm/backend.h"
#include "comm/gloo/gloo_control.h"
#include "comm/gloo/gloo_notes.h"
#include "comm/gloo/wakeup.h"

namespace rankrun::comm {

// Messages between two ranks, by five steps on the control channel:
//
//   sender    offer (tag, dtype, bytes; the data too, if short)
//   receiver  finds its receive; if it does not fit, or has all: end
//   receiver  accept, after it has begun to receive the data
//   sender    sends the data, then: sent
//   receiver  has the data, as both come in order: end
//
// So no data moves without a receive that it fits, and every sender learns how
// its message ended: without `end` it could not tell, as Gloo has no way to ask
// whether a send is through.
// Thread: any.  Lifetime: outlives its transfers.
class Messages {
 public:
  // A message under way, or over.
  struct Message {
    bool is_send;
    std::byte* data;
    std::size_t bytes;
    Envelope envelope;
    std::optional<int> peer;  // of a receive from anyone: once matched
    uint64_t id = 0;          // of the sender's
    bool matched = false;
    TimePoint began = {};
    std::unique_ptr<GlooBuffer> buffer = {};  // of the data, while it moves
    bool over = false;
    std::optional<Error> error = {};
  };

  Messages(const BackendConfig& config, std::shared_ptr<::gloo::Context> context, Control& control,
           Notes& notes, Wakeup& wakeup);

  std::unique_ptr<Transfer> Start(Message message);

  // Moves all on, and asks the store why peers are lost, which may take its time:
  // for the backend's thread. Returns when to be called again at the latest.
  TimePoint Poll(TimePoint now);

  // Ends all messages under way, and those to come. Their blocks are not touched
  // any more. A time-out, which is a collective's, is kCancelled to them.
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
    std::optional<Error> error;  // once the reason is known, or not to be expected
  };
  using Open = std::list<std::shared_ptr<Message>>;  // shared with its Handle

  TimePoint MoveOn(TimePoint now);  // without waiting
  void FindReasons();
  // Under mutex_, as all that follow.
  bool Receive();
  void OnOffer(const Offer& offer);
  void OnAccept(int peer, const ControlMessage& message);
  void OnSent(int peer, const ControlMessage& message);
  void OnEnd(int peer, const ControlMessage& message);
  void Meet(Message& receive, const Offer& offer);
  void Refuse(Message& receive, const Offer& offer);
  void Propose(Message& send);
  std::shared_ptr<Message> Find(bool is_send, int peer, uint64_t id) const;
  void LookForLosses();
  const Loss* LossOf(const Message& message);
  const Loss* LossOf(int peer);
  void Lose(int peer, const std::string& why);
  void Finish(Message& message, std::optional<Error> error = {});
  void RemoveOver();
  Error Differ(const Message& message, DType other, uint64_t other_bytes) const;

  const std::vector<int> global_ranks_;
  const DeathWatch deaths_;
  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  Control& control_;
  Notes& notes_;
  Wakeup& wakeup_;

  std::mutex mutex_;
  std::condition_variable ended_;
  Open open_;                                // in the order started
  std::deque<Offer> unmatched_;              // in the order they came
  std::vector<std::optional<Loss>> losses_;  // by group rank
  uint64_t last_id_ = 0;
  TimePoint last_progress_ = {};
  TimePoint next_look_ = {};
  std::optional<Error> stopped_;
};

}  // namespace rankrun::comm
