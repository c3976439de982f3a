#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

// Messages between agents as CBOR. Pure.
namespace rankrun::agent {

// Parses bytes that may come from a stranger. Nothing is allocated for a length
// that has not arrived.
// Errors: kProtocol if `bytes` are no CBOR map, or nest more than 16 levels
// deep.
Result<nlohmann::json> ParseCborMap(std::string_view bytes);

std::string CborOf(const nlohmann::json& json);

}  // namespace rankrun::agent
