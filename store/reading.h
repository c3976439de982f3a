#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/operation.h"
#include "store/request.h"

namespace rankrun::store {

// The largest that a server takes; more closes the connection.
struct WireLimits {
  size_t key_bytes = 8 * 1024;
  size_t value_bytes = 64 * 1024 * 1024;
  size_t keys_per_request = 131'072;
  size_t request_bytes = 256 * 1024 * 1024;  // its keys and values together

  // Values, and with them a COMPARE_SET, which carries two.
  void AllowValues(size_t bytes) {
    value_bytes = bytes;
    request_bytes = std::max(request_bytes, key_bytes + 2 * value_bytes);
  }
};

// One request on its way in, of which any part may have come. Pure.
class Reading {
 public:
  bool is_idle() const { return operation_ == nullptr && word_bytes_ == 0; }
  bool has_begun() const { return operation_ != nullptr; }

  void Begin(const Operation& operation) { operation_ = &operation; }
  // The same, when ReadNumber has taken the first half of a length for a number.
  void BeginWithHalfLength(const Operation& operation);

  // Takes what it needs off the front of `bytes`; whether the request is
  // complete. Errors: kProtocol, when it is over one of the limits.
  Result<bool> Read(std::string_view& bytes, const WireLimits& limits);

  // Makes the complete request, and is idle again.
  void Finish(Request& request);
  void Clear();

  // An integer of 4 or 8 bytes; whether all of it has come.
  bool ReadNumber(std::string_view& bytes, size_t size);
  uint64_t number() const { return number_; }

  // What the keys and values take that have come, bookkeeping included.
  size_t held_bytes() const;

 private:
  Result<bool> ReadList(std::string_view& bytes, bool with_values, const WireLimits& limits);
  Result<bool> ReadString(std::string_view& bytes, bool is_key, const WireLimits& limits);

  const Operation* operation_ = nullptr;
  size_t field_ = 0;                   // in operation_->fields
  std::array<char, 8> word_{};         // of an integer, what has come
  size_t word_bytes_ = 0;              // how much of it
  uint64_t number_ = 0;                // the integer read last
  std::optional<uint64_t> list_left_;  // strings of a list, once the count is known
  std::optional<uint64_t> length_;     // of strings_.back(), while it is read
  std::vector<std::string> strings_;   // keys and values in their order
  size_t string_bytes_ = 0;            // in all of strings_
};

}  // namespace rankrun::store
