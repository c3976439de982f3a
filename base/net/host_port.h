#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// A host with or without a port, as users write it. Pure.
namespace rankrun {

struct HostPort {
  std::string host;  // without brackets
  std::optional<uint16_t> port;

  bool operator==(const HostPort&) const = default;
};

// Parses "host", "host:29400", "[::1]" or "[::1]:29400". The last colon outside
// of brackets separates the port, as in torchrun: "fe80::1:80" is port 80 of
// fe80::1.
// Errors: kInvalid; the message names the accepted form.
Result<HostPort> ParseHostPort(std::string_view text);

// Parses "host", "10.0.0.1", "::1" or "[::1]", whose port is given elsewhere. Returns the host
// without brackets.
// Errors: kInvalid; the message names the accepted form.
Result<std::string> ParseHost(std::string_view text);

// Returns "host:29400" or "[::1]:29400".
std::string HostPortText(std::string_view host, uint16_t port);

// Returns whether `host` is a loopback address or "localhost".
bool IsLoopback(std::string_view host);

}  // namespace rankrun
