#include "agent/control/cbor.h"

#include <nlohmann/json.hpp>

#include "base/cbor_depth.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::json;

constexpr int kMaxLevels = 16;

// Returns null for an error.
Json Parse(std::string_view bytes) try {
  return CborNestsWithin(bytes, kMaxLevels) ? Json::from_cbor(bytes) : Json();
} catch (const Json::exception&) {
  return {};
}

}  // namespace

Result<Json> ParseCborMap(std::string_view bytes) {
  Json json = Parse(bytes);
  if (json.is_object()) return json;
  return Error{ErrorCode::kProtocol, "a message that is not a CBOR map"};
}

std::string CborOf(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

}  // namespace rankrun::agent
