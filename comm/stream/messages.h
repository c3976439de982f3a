#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/core/backend.h"
#include "comm/stream/control.h"
#include "comm/stream/patience.h"

namespace rankrun::comm::stream {

// Messages between two ranks over the control connections. A short message is
// sent at once with its data; its send is over when the kernel has taken it. A
// long one takes three steps:
//
//   sender    sends an offer (tag, dtype, bytes)
//   receiver  matches a receive: accepts; refuses another size or type
//   sender    sends the data in pieces; over when the kernel has taken it
//
// Receives match in the order of their start, messages in the order of arrival.
// Thread: any.  Lifetime: outlives its transfers.
class Messages final : public FrameHandler {
 public:
  Messages(const BackendConfig& config, Control& control, const Patience& patience);

  std::unique_ptr<Transfer> StartSend(ConstBlock data, int destination, const Envelope& envelope);
  std::unique_ptr<Transfer> StartRecv(Block data, std::optional<int> source,
                                      const Envelope& envelope);

  // Ends all messages. Their blocks are not touched any more.
  void Stop(const Error& why) EXCLUDES(control_.mutex());

 private:
  class Handle;

  // Send or receive, under way or over.
  struct Message {
    bool is_send;
    std::byte* data;
    size_t bytes;
    Envelope envelope;
    std::optional<int> peer;  // receive from any rank: set when matched
    uint64_t id = 0;          // assigned by the sender
    bool matched = false;
    size_t moved = 0;  // bytes of a long message
    TimePoint began = {};
    bool over = false;
    std::optional<Error> error = {};
  };
  using SharedMessage = std::shared_ptr<Message>;  // shared with its Handle

  // Message or offer that has arrived and matches no receive.
  struct Unexpected {
    int source;
    FrameHeader header;
    std::vector<std::byte> data = {};
    bool is_complete = false;
    // Taken by a receive that was started while the data arrived; the receive
    // itself, unless it did not fit.
    bool is_taken = false;
    SharedMessage receive = {};
  };

  std::byte* SpaceFor(int peer, const FrameHeader& header) override;
  void OnFrame(int peer, const FrameHeader& header) override;
  void OnWritten(int peer, const OutgoingFrame& frame) override;

  std::unique_ptr<Transfer> Start(Message message);
  void SendFirst(const SharedMessage& send) REQUIRES(control_.mutex());
  void SendPiece(const SharedMessage& send) REQUIRES(control_.mutex());
  std::byte* BeginMessage(int peer, const FrameHeader& header) REQUIRES(control_.mutex());
  void CompleteMessage(int peer) REQUIRES(control_.mutex());
  void OnOffer(int peer, const FrameHeader& header) REQUIRES(control_.mutex());
  void OnAnswer(int peer, const FrameHeader& header) REQUIRES(control_.mutex());
  void OnPiece(int peer, const FrameHeader& header) REQUIRES(control_.mutex());
  SharedMessage TakeReceive(int source, uint64_t tag) REQUIRES(control_.mutex());
  void TakeUnexpected(const SharedMessage& receive) REQUIRES(control_.mutex());
  // Binds a receive to a message; ends it if size or type differ. Returns
  // whether they fit.
  bool Match(Message& receive, int source, const FrameHeader& header) REQUIRES(control_.mutex());
  void Answer(const SharedMessage& receive, int source, const FrameHeader& offer)
      REQUIRES(control_.mutex());
  SharedMessage Find(bool is_send, int peer, uint64_t id) REQUIRES(control_.mutex());
  void Finish(Message& message, std::optional<Error> error = {}) REQUIRES(control_.mutex());
  void CheckForEnd(Message& message) REQUIRES(control_.mutex());
  std::optional<Error> LossFor(const Message& message) REQUIRES(control_.mutex());
  Error MismatchError(const Message& message, DType other, uint64_t other_bytes) const;

  Control& control_;
  const Patience& patience_;
  const DeathWatch deaths_;
  std::list<SharedMessage> open_ GUARDED_BY(control_.mutex());        // in the order started
  std::list<Unexpected> unexpected_ GUARDED_BY(control_.mutex());     // in the order of arrival
  std::vector<SharedMessage> arriving_ GUARDED_BY(control_.mutex());  // by peer: gets the frame
  uint64_t last_id_ GUARDED_BY(control_.mutex()) = 0;
};

}  // namespace rankrun::comm::stream
