#pragma once

#include <utility>

#include "base/result.h"

namespace rankrun::comm {

// The one place where a Result becomes an exception. Codes mean in comm:
//   kInvalid   DistError         wrong use, nothing was sent
//   kTimeout   DistTimeoutError  a rank did not come or answer
//   kPeerLost  DistNetworkError  no connection to a rank or to the store
//   kProtocol  DistStoreError    the store failed
//   all else   DistBackendError
[[noreturn]] void Throw(const Error& error);

// The value, or an exception.
inline void Unwrap(const Result<void>& result) {
  if (!result) Throw(result.error());
}
template <typename T>
T Unwrap(Result<T> result) {
  if (!result) Throw(result.error());
  return *std::move(result);
}

}  // namespace rankrun::comm
