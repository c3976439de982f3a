#pragma once

#include <chrono>
#include <optional>

#include <rankrun/peer.h>
#include <rankrun/tensor.h>

namespace rankrun {

// Time-out of one call, at least 1 ms. No value: the time-out of the group.
using Timeout = std::optional<std::chrono::milliseconds>;

struct CallOptions {
  CallOptions() = default;
  CallOptions(std::chrono::milliseconds limit) : timeout(limit) {}
  CallOptions(Timeout limit) : timeout(limit) {}

  Timeout timeout = {};
  // Whether the call returns before the operation is complete. Tensors are then
  // in use until the Work is complete. The call still waits for a blocking call
  // of another thread on the group.
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
