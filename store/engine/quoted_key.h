#pragma once

#include <string>
#include <string_view>

#include "base/printable.h"

namespace rankrun::store {

// Beginning of the keys by which a client whose connection was closed asks for the reason. The
// address of its end of that connection follows. CHECK and GET know such a key while the server has
// a reason.
constexpr std::string_view kRefusalKeys = "rankrun/refusal/";

// Returns a key for messages, quoted, without the "/" that clients put before it. Pure.
inline std::string QuotedKey(std::string_view key) {
  constexpr size_t kMaxWidth = 100;
  if (key.starts_with('/')) key.remove_prefix(1);
  return "\"" + EscapedAndCut(key, kMaxWidth) + "\"";
}

}  // namespace rankrun::store
