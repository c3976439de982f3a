#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun::comm::gloo {

inline constexpr size_t kSecretBytes = 16;

// Data that a rank publishes so that the others can connect to it and verify
// it.
struct PeerInfo {
  std::string secret;
  uint32_t interfaces = 0;
  std::map<int, std::vector<char>> addresses = {};  // by peer
};

std::string NewSecret();

std::string Encode(const PeerInfo& info);

// Returns the info of `owner`, with the address for `reader` only. Error:
// kProtocol.
Result<PeerInfo> DecodePeerInfo(const std::string& text, int owner, int reader, int ranks);

}  // namespace rankrun::comm::gloo
