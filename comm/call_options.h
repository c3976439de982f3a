#pragma once

#include <chrono>
#include <optional>

#include <rankrun/peer.h>
#include <rankrun/tensor.h>

namespace rankrun {

// At least 1 ms. Without a value: that of the group.
using Timeout = std::optional<std::chrono::milliseconds>;

struct CallOptions {
  CallOptions() = default;
  CallOptions(std::chrono::milliseconds limit) : timeout(limit) {}
  CallOptions(Timeout limit) : timeout(limit) {}

  Timeout timeout = {};
  // Return at once, or after the call of another thread that is to wait; the
  // tensors are in use until the Work is complete.
  bool async = false;
};
inline constexpr struct AsyncTag {
  operator CallOptions() const {
    CallOptions options;
    options.async = true;
    return options;
  }
} kAsync;

// One message of a batch.
struct P2POp {
  enum class Kind { kSend, kRecv };
  Kind kind;
  Tensor tensor;
  Peer peer;
  int tag = 0;
};

}  // namespace rankrun
