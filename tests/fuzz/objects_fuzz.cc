// Objects from other ranks, as CBOR.

#include <nlohmann/json.hpp>

#include <rankrun/cbor.h>

#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  using Json = nlohmann::json;
  const auto* bytes = reinterpret_cast<const std::byte*>(input.data());
  Json value;
  try {
    value = FromCbor<Json>({bytes, input.size()}, 3);
  } catch (const DistCodecError& error) {
    bool names_rank = std::string_view(error.what()).starts_with("object of rank 3 ");
    return names_rank ? "" : std::string("the error does not name the rank: ") + error.what();
  }
  Object once = ToCbor(value);
  return ToCbor(FromCbor<Json>(once)) == once ? "" : "an object changes";
}

}  // namespace rankrun::test
