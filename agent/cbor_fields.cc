#include "agent/cbor_fields.h"

#include "agent/plain_cbor.h"

namespace rankrun::agent::cbor {

Result<Json> Parse(std::string_view bytes) {
  // The library's parser recurses as deep as the bytes say.
  Json json;
  if (IsPlainCbor(bytes)) {
    json = Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
  }
  if (json.is_object()) return json;
  return Error{ErrorCode::kProtocol, "a message that is not a CBOR map"};
}

std::string Bytes(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

}  // namespace rankrun::agent::cbor
