#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/clients/key_table.h"

namespace rankrun::store {

// Format of a FileStore's file, pure: no I/O. Numbers are little-endian.
//
//   header: magic "rankrun-store 1\n", u32 length of the run id, run id
//   record: u32 length, u32 check sum (FNV-1a) of the payload, payload
//   payload: u8 kind of change, u32 length of the key, key, value

// State of a file's header.
enum class HeaderKind {
  kWhole,
  kTorn,     // incomplete: its writer died
  kForeign,  // not a store's, or of another version
};
struct Header {
  HeaderKind kind;
  std::string run_id;  // if whole
  size_t bytes;        // if whole: where the records begin
};

std::string EncodeHeader(std::string_view run_id);
Header DecodeHeader(std::string_view file);

// Limit of the run id in a header.
constexpr size_t kMaxRunIdBytes = 4096;

// Errors: kInvalid when key and value are too long for a record (4 GiB).
Result<std::string> EncodeRecord(const Change& change);

// Removes the first record from `bytes` and returns it. Returns nothing if
// `bytes` ends before the record does; without a concurrent writer such a
// record is torn.
// Errors: kProtocol for bytes that no writer leaves, torn or not.
Result<std::optional<Change>> DecodeRecord(std::string_view& bytes);

}  // namespace rankrun::store
