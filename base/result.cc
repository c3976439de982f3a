#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace rankrun {
namespace {

ErrorCode CodeOf(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kExhausted;
    default:
      return ErrorCode::kSystem;
  }
}

}  // namespace

Error SystemError(std::string_view what, int errno_value) {
  char text[128];
  return Error{CodeOf(errno_value),
               std::string(what) + ": " + strerror_r(errno_value, text, sizeof text)};
}

}  // namespace rankrun
