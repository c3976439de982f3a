#pragma once

#include <cstdint>
#include <initializer_list>
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

struct DescribedFunction {
  const char* name;
  bool is_there;
};

// Fails for the first function that is NULL. Error: kInvalid.
inline Result<void> CheckFunctions(std::initializer_list<DescribedFunction> functions) {
  for (const DescribedFunction& each : functions) {
    if (each.is_there) continue;
    return Error{ErrorCode::kInvalid, "the function " + std::string(each.name) +
                                          " of the backend is NULL: want a function"};
  }
  return {};
}

}  // namespace rankrun::comm
