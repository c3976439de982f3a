#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/engine/request.h"
#include "store/wire/opcode.h"

namespace rankrun::store {

// Layout of the requests of the protocol.

// Fields that follow the opcode, in order.
enum class Field : uint8_t { kNone, kNonce, kNumber, kKey, kValue, kKeys, kEntries };

// Decoded fields of one request.
struct Parts {
  std::vector<std::string>& strings;  // keys and values in order; `build` may move from them
  uint64_t number;
};

struct Operation {
  Opcode opcode;
  std::string_view name;
  std::array<Field, 3> fields;
  void (*build)(Parts, Request&);  // null for VALIDATE, which is not a request
};

const Operation& OperationOf(Opcode opcode);

}  // namespace rankrun::store
