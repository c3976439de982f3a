#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/key_table.h"

namespace rankrun::store {

// The bytes of a FileStore's file, pure: no I/O. Numbers are little-endian.
//
//   header: magic "rankrun-store 1\n", u32 length of the run id, run id
//   record: u32 length, u32 check sum (FNV-1a) of the payload, payload
//   payload: u8 kind of change, u32 length of the key, key, value

// As what the start of a file reads.
enum class HeaderKind {
  kWhole,
  kTorn,     // of a writer that did not get to the end
  kForeign,  // not of a store, or of another version
};
struct Header {
  HeaderKind kind;
  std::string run_id;  // if whole
  size_t bytes;        // if whole: where the records begin
};

std::string EncodeHeader(std::string_view run_id);
Header DecodeHeader(std::string_view file);

// The longest run id that a header may have.
constexpr size_t kLongestRunIdBytes = 4096;

// Errors: kInvalid when key and value are too long for a record (4 GiB).
Result<std::string> EncodeRecord(const Change& change);

// Takes the first record off `bytes`. Nothing if `bytes` ends before the record
// does: it is torn then, if nobody is writing. Errors: kProtocol for bytes that
// no writer leaves, torn or not.
Result<std::optional<Change>> DecodeRecord(std::string_view& bytes);

}  // namespace rankrun::store
