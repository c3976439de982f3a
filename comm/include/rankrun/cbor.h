#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>
#include <rankrun/objects.h>

// Values as CBOR for the collectives of objects. `Json` is nlohmann::json or
// another basic_json of nlohmann/json 3. The program includes that header; the
// library does not need it.
// Source: RFC 8949.
namespace rankrun {

// Bytes from another rank are not CBOR, or exceed the limits below. The text
// names the rank, the byte and the cause.
class DistCodecError : public DistError {
 public:
  using DistError::DistError;
};

// Maximum nesting of arrays, maps and strings of unknown length. It is limited
// because the parser recurses once per level.
inline constexpr int kMaxCborDepth = 64;

namespace internal {

// Returns whether `object` nests deeper than kMaxCborDepth.
RANKRUN_API bool IsCborTooDeep(std::span<const std::byte> object);

}  // namespace internal

// Returns `value` as CBOR.
template <typename Json>
Object ToCbor(const Json& value) {
  std::vector<uint8_t> cbor = Json::to_cbor(value);
  const auto* bytes = reinterpret_cast<const std::byte*>(cbor.data());
  return {bytes, bytes + cbor.size()};
}

// Returns the value of `object`. Keys of maps must be texts. `from_rank` is the
// global rank of the sender, for error texts only.
// Errors: DistCodecError.
template <typename Json>
Json FromCbor(std::span<const std::byte> object, std::optional<int> from_rank = {}) {
  std::string problem;
  if (internal::IsCborTooDeep(object)) {
    problem = "more than " + std::to_string(kMaxCborDepth) + " arrays and maps within each other";
  } else {
    try {
      const auto* begin = reinterpret_cast<const uint8_t*>(object.data());
      return Json::from_cbor(begin, begin + object.size());
    } catch (const typename Json::exception& error) {
      problem = error.what();  // "[...] parse error at byte 3: <why>"
      size_t place = problem.find("at byte ");
      if (place != std::string::npos) problem.erase(0, place);
    }
  }
  std::string whose = from_rank ? " of rank " + std::to_string(*from_rank) : "";
  throw DistCodecError("object" + whose + " is no CBOR that can be read: " + problem);
}

}  // namespace rankrun
