#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/opcode.h"
#include "store/request.h"

namespace rankrun::store {

// How the requests of the protocol are laid out.

// What follows the opcode, in order.
enum class Field : uint8_t { kNone, kNonce, kNumber, kKey, kValue, kKeys, kEntries };

// What was read of one request.
struct Parts {
  std::vector<std::string>& strings;  // keys and values in their order; to be moved from
  uint64_t number;
};

struct Operation {
  Opcode opcode;
  std::string_view name;
  std::array<Field, 3> fields;
  void (*build)(Parts, Request&);  // null: of VALIDATE, which is no request
};

const Operation& OperationOf(Opcode opcode);

}  // namespace rankrun::store
