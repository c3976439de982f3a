#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/request.h"

namespace rankrun::store {

// The bytes of PyTorch's TCPStore protocol, both directions, no I/O. Decoded are
// two dialects: the current one, of PyTorch 2.3 and newer, and the old one, up to
// about 2.1, which has other numbers for the same operations and no VALIDATE.
// Encoded is the current one; replies are the same in both. Integers are in the
// host's byte order, as PyTorch sends them.
// Source: docs/store-protocol.md, found out by running PyTorch 2.13.

constexpr uint32_t kValidateMagic = 0x3C85F7CE;

// The largest that a server takes; more closes the connection.
struct WireLimits {
  size_t key_bytes = 8 * 1024;
  size_t value_bytes = 64 * 1024 * 1024;
  size_t keys_per_request = 131'072;
  size_t request_bytes = 256 * 1024 * 1024;  // its keys and values together
};

struct Operation;  // a row of the table of operations in wire.cc
struct Dialect;    // likewise

// Cuts what one client sends into requests. Pure. Takes memory in proportion
// to what has arrived, whatever lengths were announced.
class RequestDecoder {
 public:
  explicit RequestDecoder(const WireLimits& limits) : limits_(limits) {}

  // Takes bytes off the front of `bytes` until a request is complete and
  // returns that, to be moved from before the next call; null if all of `bytes`
  // is taken and more must come. Tells the dialect by the first bytes, and
  // swallows VALIDATE.
  // Errors: kProtocol, after which the connection is to be closed and this
  // object not used again.
  Result<Request*> Next(std::string_view& bytes);

  // What the incomplete request takes, bookkeeping included.
  size_t held_bytes() const;

  // Whether a request has begun, or the greeting, and is not complete.
  bool is_within_request() const {
    return operation_ != nullptr || word_bytes_ > 0 ||
           (begun_with_validate_ && dialect_ == nullptr);
  }

  // Whether the client takes back a WAIT that took too long (CANCEL_WAIT). The
  // old dialect cannot: its clients just send their next request.
  bool cancels_waits() const;

 private:
  Result<void> Begin(uint8_t byte);
  void Finish();

  // Each takes what it can of `bytes`; whether that was all it needed.
  Result<bool> TellDialect(std::string_view& bytes);
  Result<bool> TellDialectWithoutValidate(uint8_t first);
  Result<bool> ReadFields(std::string_view& bytes);
  Result<bool> ReadList(std::string_view& bytes, bool with_values);
  Result<bool> ReadString(std::string_view& bytes, std::string_view what, size_t limit);
  bool ReadNumber(std::string_view& bytes, size_t size);

  const WireLimits limits_;
  const Dialect* dialect_ = nullptr;  // until it is known
  bool begun_with_validate_ = false;  // or with a SET of the old dialect

  Request request_;  // the last complete one

  // The request that is being read.
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

// Appends what a server sends for `reply`.
void AppendReply(std::string& out, const Reply& reply);

// What a client sends first: VALIDATE.
std::string EncodeValidate();

// What a client sends for `request`, which is not WATCH_KEY.
std::string EncodeRequest(const Request& request);

}  // namespace rankrun::store
