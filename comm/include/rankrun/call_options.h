#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <utility>

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

// Tensor of a message: memory of a Tensor, or that of a ConstTensor, which can only be sent.
class MessageTensor {
 public:
  template <typename T>
  requires std::convertible_to<T, Tensor> MessageTensor(T&& values)
      : tensor_(Tensor(std::forward<T>(values))), can_receive_(true) {}
  template <typename T>
  requires(std::convertible_to<T, ConstTensor> && !std::convertible_to<T, Tensor> && !Temporary<T>)
      MessageTensor(T&& values)
      : tensor_(std::forward<T>(values)), can_receive_(false) {}

  const ConstTensor& tensor() const { return tensor_; }
  bool can_receive() const { return can_receive_; }

 private:
  ConstTensor tensor_;
  bool can_receive_;
};

// One message of a batch.
struct P2POp {
  enum class Kind { kSend, kRecv };
  Kind kind;
  MessageTensor tensor;
  Source peer = {};  // no value: kRecv from any member
  int tag = 0;
};

}  // namespace rankrun
