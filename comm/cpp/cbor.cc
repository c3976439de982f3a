#include <string_view>

#include <rankrun/cbor.h>

#include "base/cbor_depth.h"

namespace rankrun::internal {

bool IsCborTooDeep(std::span<const std::byte> object) {
  std::string_view bytes(reinterpret_cast<const char*>(object.data()), object.size());
  return !CborNestsWithin(bytes, kMaxCborDepth);
}

}  // namespace rankrun::internal
