#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/shm/channel.h"

namespace rankrun::comm::shm {

// Send or receive that is not complete; ranks are group ranks.
// Thread: the one that moves data; over(), and everything after it is true:
// any.
class PendingTransfer {
 public:
  explicit PendingTransfer(const Envelope& its_envelope) : envelope(its_envelope) {}
  PendingTransfer(const PendingTransfer&) = delete;
  PendingTransfer& operator=(const PendingTransfer&) = delete;

  bool over() const { return over_.load(std::memory_order_acquire); }
  // Must be the last access, because the owner may destroy the transfer at
  // once.
  void Finish(std::optional<Error> its_error) {
    error = std::move(its_error);
    over_.store(true, std::memory_order_release);
  }

  const Envelope envelope;
  std::optional<Error> error;

 private:
  std::atomic<bool> over_ = false;
};

struct PendingSend : PendingTransfer {
  PendingSend(ConstBlock block, int to, const Envelope& its_envelope)
      : PendingTransfer(its_envelope), data(block), destination(to) {}
  const ConstBlock data;
  const int destination;
};

struct PendingRecv : PendingTransfer {
  PendingRecv(Block block, std::optional<int> from, const Envelope& its_envelope)
      : PendingTransfer(its_envelope), data(block), wanted_source(from) {}
  const Block data;
  const std::optional<int> wanted_source;
  int source = -1;  // sender, set when over
};

// The error of a channel whose counters cannot be right. `peer`: "rank 3".
Error DamageOf(const std::string& peer);

// " (tag 5)".
std::string TagText(uint64_t tag);
// "80 bytes of float32 (tag 5)".
std::string MessageText(const MessageHeader& header);
// "40" or "40 bytes of int64": the properties that differ from the message.
std::string WantedText(const MessageHeader& header, size_t bytes, DType dtype);

}  // namespace rankrun::comm::shm
