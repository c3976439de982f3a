#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/nodes_spec.h"
#include "base/result.h"

// The texts of --rdzv-endpoint and --master-addr. Pure.
namespace rankrun::launcher {

struct HostAndPort {
  std::string host;  // without brackets
  std::optional<uint16_t> port;

  bool operator==(const HostAndPort&) const = default;
};

// "host", "host:29400", "[::1]:29400"; as torchrun has it, the last colon
// outside of brackets stands before the port.
// Errors: kInvalid, what would be right.
Result<HostAndPort> ParseEndpoint(std::string_view text);

// The same with commas between; not empty.
Result<std::vector<HostAndPort>> ParseEndpoints(std::string_view text);

// "host:29400", "[::1]:29400"
std::string EndpointText(const agent::Endpoint& endpoint);

// Whether it can only be this host, by the looks of its name.
bool IsLoopback(std::string_view host);

}  // namespace rankrun::launcher
