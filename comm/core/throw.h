#pragma once

#include <utility>

#include "base/private_api.h"
#include "base/result.h"

namespace rankrun::comm {

// Throws the exception for an error of a process group. All errors become
// exceptions here or in ThrowStoreError.
//   kInvalid   DistError          wrong use, nothing was sent
//   kTimeout   DistTimeoutError   a rank is missing or does not answer
//   kPeerLost  DistNetworkError   no connection to a rank or to the store
//   kCancelled DistNetworkError   the agent reported the death of a rank
//   kMismatch  DistMismatchError  the calls of the ranks do not match
//   kProtocol  DistStoreError     the store failed
//   others     DistBackendError
[[noreturn]] RANKRUN_PRIVATE_API void Throw(const Error& error);

// Throws the exception for an error of a public store, which waits for keys,
// not ranks.
//   kInvalid   DistError         wrong use, nothing was sent
//   kPeerLost  DistNetworkError  no connection to the server
//   kCancelled DistNetworkError  the agent reported the death of a rank
//   others     DistStoreError    a key did not appear in time, or the store failed
[[noreturn]] void ThrowStoreError(const Error& error);

inline void UnwrapStore(const Result<void>& result) {
  if (!result) ThrowStoreError(result.error());
}
template <typename T>
T UnwrapStore(Result<T> result) {
  if (!result) ThrowStoreError(result.error());
  return *std::move(result);
}

// Return the value of `result` or throw its error.
inline void Unwrap(const Result<void>& result) {
  if (!result) Throw(result.error());
}
template <typename T>
T Unwrap(Result<T> result) {
  if (!result) Throw(result.error());
  return *std::move(result);
}

}  // namespace rankrun::comm
