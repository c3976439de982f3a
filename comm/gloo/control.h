#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace rankrun::comm::gloo {

using GlooBuffer = ::gloo::transport::UnboundBuffer;

// Purpose of a Gloo slot, in its first byte. Gloo's own collectives, which are
// not used here, have 1 to 8.
enum class SlotUse : uint64_t { kControl = 0x50, kMessage, kCollective, kSizes, kCheck };
inline uint64_t SlotOf(SlotUse use, uint64_t number) {
  return static_cast<uint64_t>(use) << 56 | (number & 0x00ff'ffff'ffff'ffff);
}

// Message on the control channel. All have one size, because Gloo ends the
// process if a message is longer than its receive buffer.
struct ControlMessage {
  enum class Kind : uint64_t { kHello = 1, kOffer, kAccept, kSent, kEnd, kFarewell };
  static constexpr size_t kPayloadBytes = 960;

  Kind kind;
  uint64_t id = 0;     // of the message it is about; counted by the sender; kFarewell: of the
                       // first call that fails
  uint64_t tag = 0;    // kOffer: as in Envelope
  uint64_t dtype = 0;  // kOffer: of the message; kEnd: expected by the receiver
  uint64_t bytes = 0;  // as dtype
  uint64_t ok = 1;     // kEnd: 0 if the receiver refused the message
  // kOffer: the data, if it fits. kFarewell: the zero-terminated text.
  std::array<char, kPayloadBytes> payload = {};
  uint64_t seen = 0;      // number of messages that the sender has received
  uint64_t sequence = 0;  // from 1; written last, so it marks a complete message
};

// Small messages between all pairs of ranks that can be polled without waiting,
// and detection of lost peers. Gloo offers neither, because its waits close all
// connections at a time-out. But Gloo's thread fills a buffer from front to
// back, so the last word shows that a message is complete.
// A few receives are always posted. So messages need not wait for one, and a
// receive without data fails when its connection is lost.
// Thread: any.
class Control {
 public:
  explicit Control(std::shared_ptr<::gloo::Context> context);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return context_->rank; }
  int ranks() const { return context_->size; }

  // Sends without waiting. A loss on the way is reported by Lost().
  void Send(int peer, ControlMessage message);

  // Returns the next message of `peer` that has arrived, except farewells.
  std::optional<ControlMessage> Receive(int peer);

  // Returns why the connection to `peer` is lost; no value: it is not lost.
  std::optional<std::string> Lost(int peer);

  // Returns the first lost peer that has sent no farewell, and the reason of its
  // loss.
  struct SilentLoss {
    int peer;
    std::string why;
  };
  std::optional<SilentLoss> FirstSilentLoss();

  // Sends all peers the reason for which this rank is about to close its
  // connections, and the number of the first call that fails.
  void SendFarewell(const std::string& text, uint64_t first_call);

  // Returns the farewell of `peer`, if any. It arrives before the loss.
  std::optional<std::string> Farewell(int peer);
  uint64_t FirstCallThatFails(int peer);  // on a peer that has sent one

  // Waits until the kernel has taken all sent data, at most `timeout`.
  void Flush(std::chrono::milliseconds timeout);

 private:
  static constexpr size_t kReceives = 4;

  struct Slot {
    ControlMessage message;
    std::unique_ptr<GlooBuffer> buffer;
  };
  struct Line {                              // connection to one peer
    std::array<Slot, kReceives> receives;    // used in turn
    std::deque<std::unique_ptr<Slot>> sent;  // not known to be received by the peer
    uint64_t sent_count = 0;
    uint64_t seen_count = 0;  // of our messages, by the peer
    uint64_t received_count = 0;
    // Gloo accepts no more data, but messages that have arrived can still be
    // received.
    std::optional<std::string> closed;
    std::optional<std::string> lost;
    std::optional<std::string> farewell;
    uint64_t first_call = 0;  // that fails
  };

  bool TakeFarewell(Line& line);
  void SendNow(int peer, ControlMessage message) REQUIRES(mutex_);
  void Post(int peer, Slot& slot) REQUIRES(mutex_);
  static std::optional<std::string> WhyClosed(Line& line);

  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  Mutex mutex_;
  std::vector<Line> lines_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::gloo
