#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/engine/reply.h"
#include "store/engine/request.h"
#include "store/wire/partial_request.h"

namespace rankrun::store {

// Encoding of PyTorch's TCPStore protocol, both directions, no I/O. The decoder
// accepts two dialects: the current one, of PyTorch 2.3 and newer, and the old
// one, up to about 2.1. The old one has other numbers for the same operations
// and no VALIDATE. Requests are encoded in the current dialect; replies are the
// same in both. Integers are in the host's byte order, as in PyTorch.
// Source: docs/store-protocol.md, found out by running PyTorch 2.13.

constexpr uint32_t kValidateMagic = 0x3C85F7CE;

struct Dialect;  // numbers of the operations in one generation of PyTorch; in wire.cc

// Splits the bytes of one client into requests. Pure. Its memory is
// proportional to the received bytes, whatever lengths were announced.
class RequestDecoder {
 public:
  explicit RequestDecoder(const WireLimits& limits) : limits_(limits) {}

  // Consumes bytes from the front of `bytes` until a request is complete and
  // returns that request. The caller must move from it before the next call to
  // any decoder on this thread. Returns null if `bytes` is used up first.
  // Detects the dialect by the first bytes, and skips VALIDATE.
  // Errors: kProtocol; kExhausted over a limit. The caller must then close the connection and not
  // use this object again.
  Result<Request*> Next(std::string_view& bytes);

  // Returns the request that has arrived in part: `SET of key "model"`; empty if there is none.
  std::string half_request() const { return half_ == nullptr ? "" : half_->Describe(); }
  // Memory of the incomplete request, bookkeeping included.
  size_t held_bytes() const { return half_ == nullptr ? 0 : half_->held_bytes(); }

  // Whether a request, or the greeting, has begun and is not complete.
  bool is_within_request() const {
    return half_ != nullptr || (begun_with_validate_ && dialect_ == nullptr);
  }

  // Whether the client withdraws a WAIT that timed out (CANCEL_WAIT). Clients
  // of the old dialect cannot; they just send their next request.
  bool cancels_waits() const;

 private:
  Result<bool> ReadRequest(PartialRequest& reading, std::string_view& bytes);
  Result<bool> DetectDialect(PartialRequest& reading, std::string_view& bytes);
  Result<bool> DetectDialectWithoutValidate(uint8_t first);
  Result<void> Begin(PartialRequest& reading, uint8_t byte) const;

  const WireLimits limits_;
  const Dialect* dialect_ = nullptr;      // null until it is known
  bool begun_with_validate_ = false;      // or with SET of the old dialect
  std::unique_ptr<PartialRequest> half_;  // incomplete request; null if there is none
};

// Appends the encoded `reply`.
void AppendReply(std::string& out, const Reply& reply);

// Returns the greeting of a client: VALIDATE.
std::string EncodeValidate();

// Encodes `request`, which must not be WATCH_KEY.
std::string EncodeRequest(const Request& request);

}  // namespace rankrun::store
