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
#include "store/engine/request.h"
#include "store/wire/operation.h"

namespace rankrun::store {

// Limits of a server on requests. It closes a connection that exceeds them.
struct WireLimits {
  size_t key_bytes = 8 * 1024;
  size_t value_bytes = 64 * 1024 * 1024;
  size_t keys_per_request = 131'072;
  size_t request_bytes = 256 * 1024 * 1024;  // keys and values of one request together

  // Allows values of `bytes`, and a COMPARE_SET with two of them.
  void AllowValues(size_t bytes) {
    value_bytes = bytes;
    request_bytes = std::max(request_bytes, key_bytes + 2 * value_bytes);
  }
};

// A request that may have arrived only in part. Pure.
class PartialRequest {
 public:
  bool is_idle() const { return operation_ == nullptr && word_bytes_ == 0; }
  bool has_begun() const { return operation_ != nullptr; }

  void Begin(const Operation& operation) { operation_ = &operation; }
  // Begins a request when ReadNumber has already read the first half of a
  // length as a number.
  void BeginWithHalfLength(const Operation& operation);

  // Consumes the bytes of the request from the front of `bytes`. Returns
  // whether the request is complete.
  // Errors: kExhausted when it exceeds one of the limits; the message names the key.
  Result<bool> Read(std::string_view& bytes, const WireLimits& limits);

  // Builds the complete request and becomes idle again.
  void Finish(Request& request);
  void Clear();

  // Reads an integer of 4 or 8 bytes. Returns whether it is complete.
  bool ReadNumber(std::string_view& bytes, size_t size);
  uint64_t number() const { return number_; }

  // Returns `SET of key "model"`, as much as has arrived; empty if not even the operation has.
  std::string Describe() const;

  // Returns the memory of the received keys and values, bookkeeping included.
  size_t held_bytes() const;

 private:
  Result<bool> ReadList(std::string_view& bytes, bool with_values, const WireLimits& limits);
  Result<bool> ReadString(std::string_view& bytes, bool is_key, const WireLimits& limits);

  const Operation* operation_ = nullptr;
  size_t field_ = 0;                   // index in operation_->fields
  std::array<char, 8> word_{};         // received bytes of an incomplete integer
  size_t word_bytes_ = 0;              // number of bytes in word_
  uint64_t number_ = 0;                // last integer read
  std::optional<uint64_t> list_left_;  // remaining strings of a list, once its count is known
  std::optional<uint64_t> length_;     // announced length of strings_.back(), while it is read
  std::vector<std::string> strings_;   // keys and values in order
  size_t string_bytes_ = 0;            // bytes in all strings_
};

}  // namespace rankrun::store
