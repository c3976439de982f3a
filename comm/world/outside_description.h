#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <rankrun/c/types.h>

#include "base/result.h"
#include "comm/core/collective.h"
#include "comm/world/plugin.h"

namespace rankrun::comm {

// Fails unless the beginning of a struct that describes an outside backend is one that
// this library can use. `type`: of the struct, for texts. `least`: size of its first version.
// Error: kInvalid.
template <typename Description>
Result<void> CheckDescription(const Description& backend, uint32_t version, const std::string& type,
                              size_t least = sizeof(Description)) {
  auto invalid = [](const std::string& text) { return Error{ErrorCode::kInvalid, text}; };
  if (backend.version != version) {
    return invalid("the backend is of version " + std::to_string(backend.version) + ": want " +
                   std::to_string(version));
  }
  if (backend.size < least) {
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

// Calls a function of an outside backend. Its last two arguments are the room for a reason.
// Errors, with that reason: kInvalid, kTimeout or kPeerLost for a status that says so; kSystem.
template <typename Function, typename... Arguments>
Result<void> Ask(Function function, Arguments... arguments) {
  std::array<char, 1024> reason{};
  rankrun_status status = function(arguments..., reason.data(), reason.size());
  reason.back() = '\0';
  if (status == RANKRUN_OK) return {};
  ErrorCode code = ErrorCode::kSystem;
  if (status == RANKRUN_INVALID) code = ErrorCode::kInvalid;
  if (status == RANKRUN_TIMEOUT) code = ErrorCode::kTimeout;
  if (status == RANKRUN_NETWORK) code = ErrorCode::kPeerLost;
  return Error{code, reason[0] != '\0' ? reason.data() : "the backend gives no reason"};
}

// Returns blocks in the form of an outside backend, which only reads those that are const.
inline std::vector<rankrun_bytes> BlocksInC(std::span<const Block> blocks) {
  std::vector<rankrun_bytes> in_c;
  for (const Block& block : blocks) in_c.push_back({block.data, block.bytes});
  return in_c;
}
inline std::vector<rankrun_bytes> BlocksInC(std::span<const ConstBlock> blocks) {
  std::vector<rankrun_bytes> in_c;
  for (const ConstBlock& block : blocks) {
    in_c.push_back({const_cast<std::byte*>(block.data), block.bytes});
  }
  return in_c;
}

// A backend for CPU memory refuses no arguments: the library has checked them.
inline Error NoRefusal(Error error) {
  if (error.code == ErrorCode::kInvalid) error.code = ErrorCode::kSystem;
  return error;
}

}  // namespace rankrun::comm
