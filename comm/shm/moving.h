#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "comm/backend.h"
#include "comm/shm/channel.h"

namespace rankrun::comm {

// What a caller wants moved; ranks are group ranks.
// Thread: the one that moves it, but over() and, after that, all of it: any.
class Moving {
 public:
  explicit Moving(const Envelope& its_envelope) : envelope(its_envelope) {}
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

  bool over() const { return over_.load(std::memory_order_acquire); }
  // The last that is done with it: its owner may destroy it at once.
  void Finish(std::optional<Error> its_error) {
    error = std::move(its_error);
    over_.store(true, std::memory_order_release);
  }

  const Envelope envelope;
  std::optional<Error> error;

 private:
  std::atomic<bool> over_ = false;
};

struct Sending : Moving {
  Sending(ConstBlock block, int to, const Envelope& its_envelope)
      : Moving(its_envelope), data(block), destination(to) {}
  const ConstBlock data;
  const int destination;
};

struct Receiving : Moving {
  Receiving(Block block, std::optional<int> from, const Envelope& its_envelope)
      : Moving(its_envelope), data(block), wanted_source(from) {}
  const Block data;
  const std::optional<int> wanted_source;
  int source = -1;  // once over
};

// " (tag 5)".
std::string TagText(uint64_t tag);
// "80 bytes of float32 (tag 5)".
std::string MessageText(const MessageHeader& header);
// "40", "40 bytes of int64": what differs from the message.
std::string WantedText(const MessageHeader& header, std::size_t bytes, DType dtype);

}  // namespace rankrun::comm
