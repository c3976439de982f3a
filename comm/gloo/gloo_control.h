#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::comm {

using GlooBuffer = ::gloo::transport::UnboundBuffer;

// The first byte of a Gloo slot says whose it is. Gloo's own collectives, which
// are not used here, have 1 to 8.
enum class SlotUse : uint64_t { kControl = 0x50, kMessage, kCollective, kSizes, kCheck };
inline uint64_t SlotOf(SlotUse use, uint64_t number) {
  return static_cast<uint64_t>(use) << 56 | (number & 0x00ff'ffff'ffff'ffff);
}

// What travels on the control channel. All have one size, as Gloo ends the
// process at a message that is longer than what it is received into.
struct ControlMessage {
  enum class Kind : uint64_t { kHello = 1, kOffer, kAccept, kSent, kEnd, kFarewell };
  static constexpr std::size_t kPayloadBytes = 960;

  Kind kind;
  uint64_t id = 0;   // of the sender's, per pair: which message this is about
  uint64_t tag = 0;  // of an offer; from here on as in Envelope
  uint64_t dtype = 0;
  uint64_t bytes = 0;  // of an offer; of an end the receiver's
  uint64_t ok = 1;     // of an end
  // Of an offer: the data, if it fits; of a farewell its text, with a zero byte.
  std::array<char, kPayloadBytes> payload = {};
  uint64_t seen = 0;      // how many the sender has received
  uint64_t sequence = 0;  // from 1; written last, so it tells that all is there
};

// Small messages between all pairs of ranks that can be looked for without
// waiting, and whether a peer is still there: Gloo offers neither. Its waits
// end all connections when their time is up; its own thread, however, fills a
// buffer from front to back, so that the last word tells that all has come.
// A few receives are always under way, so that messages need not wait for one,
// and because Gloo tells of a lost connection those that have not begun.
// Thread: any.
class Control {
 public:
  explicit Control(std::shared_ptr<::gloo::Context> context);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return context_->rank; }
  int ranks() const { return context_->size; }

  // Does not wait. That it was lost on the way is found by Lost().
  void Send(int peer, ControlMessage message);

  // The next message of `peer`, if it has come; no farewell.
  std::optional<ControlMessage> Receive(int peer);

  // Why nothing comes from `peer` any more, once that is so.
  std::optional<std::string> Lost(int peer);

  // Tells all peers why this rank closes its connections, before it does.
  void SayFarewell(const std::string& text);

  // What `peer` has said, once it has come; it comes before the loss.
  std::optional<std::string> Farewell(int peer);

  // Waits until all that was sent is on its way, at most `timeout`.
  void Flush(std::chrono::milliseconds timeout);

 private:
  static constexpr std::size_t kReceives = 4;

  struct Slot {
    ControlMessage message;
    std::unique_ptr<GlooBuffer> buffer;
  };
  struct Line {                              // to one peer
    std::array<Slot, kReceives> receives;    // in turn
    std::deque<std::unique_ptr<Slot>> sent;  // what the peer may not have seen
    uint64_t sent_count = 0;
    uint64_t seen_count = 0;  // of ours, by the peer
    uint64_t received_count = 0;
    // Gloo takes no more; but what has come before that is still to be received.
    std::optional<std::string> closed;
    std::optional<std::string> lost;
    std::optional<std::string> farewell;
  };

  // Under mutex_.
  bool TakeFarewell(Line& line);
  void SendNow(int peer, ControlMessage message);
  void Post(int peer, Slot& slot);
  static std::optional<std::string> WhyClosed(Line& line);

  const std::shared_ptr<::gloo::Context> context_;  // Gloo's buffers share it
  std::mutex mutex_;
  std::vector<Line> lines_;
};

}  // namespace rankrun::comm
