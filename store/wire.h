#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/reading.h"
#include "store/reply.h"
#include "store/request.h"

namespace rankrun::store {

// The bytes of PyTorch's TCPStore protocol, both directions, no I/O. Decoded are
// two dialects: the current one, of PyTorch 2.3 and newer, and the old one, up to
// about 2.1, which has other numbers for the same operations and no VALIDATE.
// Encoded is the current one; replies are the same in both. Integers are in the
// host's byte order, as PyTorch sends them.
// Source: docs/store-protocol.md, found out by running PyTorch 2.13.

constexpr uint32_t kValidateMagic = 0x3C85F7CE;

struct Dialect;  // how a generation of PyTorch numbers the operations; in wire.cc

// Cuts what one client sends into requests. Pure. Takes memory in proportion
// to what has arrived, whatever lengths were announced.
class RequestDecoder {
 public:
  explicit RequestDecoder(const WireLimits& limits) : limits_(limits) {}

  // Takes bytes off the front of `bytes` until a request is complete and
  // returns that, to be moved from before the next call to any decoder of this
  // thread; null if all of `bytes` is taken and more must come. Tells the
  // dialect by the first bytes, and swallows VALIDATE.
  // Errors: kProtocol, after which the connection is to be closed and this
  // object not used again.
  Result<Request*> Next(std::string_view& bytes);

  // What the incomplete request takes, bookkeeping included.
  size_t held_bytes() const { return half_ == nullptr ? 0 : half_->held_bytes(); }

  // Whether a request has begun, or the greeting, and is not complete.
  bool is_within_request() const {
    return half_ != nullptr || (begun_with_validate_ && dialect_ == nullptr);
  }

  // Whether the client takes back a WAIT that took too long (CANCEL_WAIT). The
  // old dialect cannot: its clients just send their next request.
  bool cancels_waits() const;

 private:
  Result<bool> ReadRequest(Reading& reading, std::string_view& bytes);
  Result<bool> TellDialect(Reading& reading, std::string_view& bytes);
  Result<bool> TellDialectWithoutValidate(uint8_t first);
  Result<void> Begin(Reading& reading, uint8_t byte) const;

  const WireLimits limits_;
  const Dialect* dialect_ = nullptr;  // until it is known
  bool begun_with_validate_ = false;  // or with a SET of the old dialect
  std::unique_ptr<Reading> half_;     // a request that has begun to come
};

// Appends what a server sends for `reply`.
void AppendReply(std::string& out, const Reply& reply);

// What a client sends first: VALIDATE.
std::string EncodeValidate();

// What a client sends for `request`, which is not WATCH_KEY.
std::string EncodeRequest(const Request& request);

}  // namespace rankrun::store
