#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/private_api.h"

namespace rankrun {

enum class ErrorCode {
  kTimeout,
  kCancelled,
  kPeerLost,
  kNotFound,
  kInvalid,
  kMismatch,  // parties that must agree do not; the message has both values
  kProtocol,
  kExhausted,  // out of descriptors, memory or processes; a retry may succeed
  kSystem,
};

// Cause of a failed operation: a code for the program, a message for the user.
struct Error {
  ErrorCode code;
  std::string message;  // "connect 10.0.0.1:29500: connection refused"

  // Prepends the context of the caller: "<what>: <message>".
  Error In(std::string_view what) && {
    message.insert(0, std::string(what) + ": ");
    return std::move(*this);
  }
};

// Returns "<what>: <text of errno_value>" with the matching code: kNotFound for
// ENOENT, kTimeout for ETIMEDOUT, kExhausted for EAGAIN, EMFILE, ENFILE and
// ENOMEM, otherwise kSystem.
RANKRUN_PRIVATE_API Error SystemError(std::string_view what, int errno_value);

// A T, or the Error that prevented it. Has the interface of std::expected<T,
// Error> (C++23), which is to replace it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace rankrun
