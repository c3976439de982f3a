#include "comm/core/throw.h"

#include <rankrun/dist_error.h>

namespace rankrun::comm {

void Throw(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
      throw DistError(error.message);
    case ErrorCode::kTimeout:
      throw DistTimeoutError(error.message);
    case ErrorCode::kPeerLost:
    case ErrorCode::kCancelled:
      throw DistNetworkError(error.message);
    case ErrorCode::kProtocol:
      throw DistStoreError(error.message);
    case ErrorCode::kMismatch:
      throw DistMismatchError(error.message);
    case ErrorCode::kExhausted:
    case ErrorCode::kNotFound:
    case ErrorCode::kSystem:
      throw DistBackendError(error.message);
  }
  __builtin_unreachable();
}

void ThrowStoreError(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
      throw DistError(error.message);
    case ErrorCode::kPeerLost:
    case ErrorCode::kCancelled:
      throw DistNetworkError(error.message);
    case ErrorCode::kTimeout:
    case ErrorCode::kProtocol:
    case ErrorCode::kMismatch:
    case ErrorCode::kExhausted:
    case ErrorCode::kNotFound:
    case ErrorCode::kSystem:
      throw DistStoreError(error.message);
  }
  __builtin_unreachable();
}

}  // namespace rankrun::comm
