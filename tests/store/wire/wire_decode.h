#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/wire/wire.h"

namespace rankrun::store {

// Parses hex as in docs/store-protocol.md: "00 ce f7".
inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  int digits = 0;
  unsigned value = 0;
  for (char c : hex) {
    if (c == ' ') continue;
    unsigned digit = std::isdigit(static_cast<unsigned char>(c)) != 0
                         ? static_cast<unsigned>(c - '0')
                         : static_cast<unsigned>(c - 'a') + 10;
    value = value * 16 + digit;
    if (++digits % 2 == 0) {
      bytes += static_cast<char>(value);
      value = 0;
    }
  }
  return bytes;
}

// A request and its bytes as hex.
struct EncodedRequest {
  // Not an aggregate: g++ 12 takes half a minute to find out that a list of them is not constant.
  EncodedRequest(const char* bytes, Request decoded) : hex(bytes), request(std::move(decoded)) {}

  const char* hex;
  Request request;
};

struct Decoded {
  std::vector<Request> requests;
  std::string error;  // empty: none
};

// Decodes `bytes` in reads of `piece` bytes.
inline Decoded Decode(std::string_view bytes, size_t piece, const WireLimits& limits = {}) {
  RequestDecoder decoder(limits);
  Decoded decoded;
  while (!bytes.empty()) {
    std::string_view read = bytes.substr(0, piece);
    bytes.remove_prefix(read.size());
    while (true) {
      auto next = decoder.Next(read);
      if (!next) {
        const ErrorCode code = next.error().code;
        EXPECT_TRUE(code == ErrorCode::kProtocol || code == ErrorCode::kExhausted);
        decoded.error = next.error().message;
        return decoded;
      }
      if (!*next) break;
      decoded.requests.push_back(std::move(**next));
    }
    EXPECT_TRUE(read.empty());
  }
  return decoded;
}

}  // namespace rankrun::store
