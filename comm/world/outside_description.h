#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "comm/world/plugin.h"

namespace rankrun::comm {

// Fails unless the beginning of a struct that describes an outside backend is one that
// this library can use. `type`: of the struct, for texts. Error: kInvalid.
template <typename Description>
Result<void> CheckDescription(const Description& backend, uint32_t version,
                              const std::string& type) {
  auto invalid = [](const std::string& text) { return Error{ErrorCode::kInvalid, text}; };
  if (backend.version != version) {
    return invalid("the backend is of version " + std::to_string(backend.version) + ": want " +
                   std::to_string(version));
  }
  if (backend.size < sizeof backend) {
    return invalid("the backend has the size " + std::to_string(backend.size) + ": want sizeof(" +
                   type + "), " + std::to_string(sizeof backend));
  }
  if (backend.name == nullptr || !IsBackendName(backend.name)) {
    return invalid("the name of the backend is " +
                   (backend.name == nullptr ? "NULL" : "\"" + std::string(backend.name) + "\"") +
                   ": want small letters, digits and _");
  }
  return {};
}

}  // namespace rankrun::comm
