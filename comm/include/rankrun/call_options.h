#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <ratio>
#include <type_traits>
#include <utility>

#include <rankrun/peer.h>
#include <rankrun/tensor.h>

namespace rankrun {

namespace internal {

template <typename T>
struct IsDuration : std::false_type {};
template <typename Rep, typename Period>
struct IsDuration<std::chrono::duration<Rep, Period>> : std::true_type {};

// Rounds up, and clamps to what milliseconds can hold.
template <typename Rep, typename Period>
constexpr std::chrono::milliseconds InMilliseconds(std::chrono::duration<Rep, Period> limit) {
  using std::chrono::milliseconds;
  constexpr milliseconds kMax = milliseconds::max() / 2;
  const std::chrono::duration<double, std::milli> wanted = limit;
  if (!(wanted < kMax)) return kMax;
  if (wanted < -kMax) return -kMax;
  return std::chrono::ceil<milliseconds>(limit);
}

}  // namespace internal

// Time-out of one call, at least 1 ms, from any duration. No value: the time-out of the group.
struct Timeout : std::optional<std::chrono::milliseconds> {
  Timeout() = default;
  Timeout(std::nullopt_t) {}
  Timeout(std::optional<std::chrono::milliseconds> limit) : optional(limit) {}
  template <typename Rep, typename Period>
  Timeout(std::chrono::duration<Rep, Period> limit) : optional(internal::InMilliseconds(limit)) {}
  template <std::same_as<Timeout> T>
  friend bool operator==(const T& a, const T& b) {
    return static_cast<const optional&>(a) == static_cast<const optional&>(b);
  }
};

// {.timeout = 10s, .async = true}. Where a call takes options, it also takes a duration or kAsync.
struct CallOptions {
  Timeout timeout = {};
  // Whether the call returns before the operation is complete. Tensors are then
  // in use until the Work is complete. The call still waits for a blocking call
  // of another thread on the group.
  bool async = false;
};
inline constexpr struct AsyncTag {
  operator CallOptions() const { return {.timeout = {}, .async = true}; }
} kAsync;

// An option by itself: a duration, a Timeout or kAsync.
template <typename T>
concept CallOption = std::same_as<T, AsyncTag> || std::same_as<T, Timeout> ||
    std::same_as<T, std::optional<std::chrono::milliseconds>> || internal::IsDuration<T>::value;

namespace internal {

inline CallOptions OptionsOf(AsyncTag tag) { return tag; }
inline CallOptions OptionsOf(Timeout limit) { return {.timeout = limit, .async = false}; }

}  // namespace internal

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
