#pragma once

#include <utility>

#include "base/result.h"

namespace rankrun::comm {

// The one place where a Result becomes an exception. Codes mean in process
// groups:
//   kInvalid   DistError         wrong use, nothing was sent
//   kTimeout   DistTimeoutError  a rank did not come or answer
//   kPeerLost  DistNetworkError  no connection to a rank or to the store
//   kCancelled DistNetworkError  the agent says that a rank has died
//   kProtocol  DistStoreError    the store failed
//   all else   DistBackendError
[[noreturn]] void Throw(const Error& error);

// The same for the public stores, whose waits are for keys and not for ranks:
//   kInvalid   DistError         wrong use, nothing was sent
//   kPeerLost  DistNetworkError  no connection to the server
//   kCancelled DistNetworkError  the agent says that a rank has died
//   all else   DistStoreError    a key did not come in time, or the store failed
[[noreturn]] void ThrowStoreError(const Error& error);

inline void UnwrapStore(const Result<void>& result) {
  if (!result) ThrowStoreError(result.error());
}
template <typename T>
T UnwrapStore(Result<T> result) {
  if (!result) ThrowStoreError(result.error());
  return *std::move(result);
}

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
