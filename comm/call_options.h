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
  bool async = false;  // return at once; the tensors are in use until the Work is complete
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
