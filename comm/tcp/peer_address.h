#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun::comm::tcp {

constexpr size_t kRankKeyBytes = 32;
using RankKey = std::array<unsigned char, kRankKeyBytes>;

constexpr uint32_t kMaxInterfaces = 16;

// Data that a rank publishes in the store so that the others can connect to it
// and authenticate it. A value.
struct PeerAddress {
  RankKey key{};            // random; only members can read the store
  uint32_t interfaces = 0;  // that the user named; 0: the rank listens at its host
  // One for each interface; one if none is named. IPv6 addresses have no scope.
  std::vector<SocketAddress> listeners;

  // Returns the number of data streams between two ranks.
  size_t streams() const { return listeners.size(); }
};

// Encodes a version, the key and the listeners. Pure.
std::string Encode(const PeerAddress& address);

// Decodes the text of Encode. Pure. Errors: kProtocol if the text is damaged or
// of another version.
Result<PeerAddress> DecodePeerAddress(std::string_view text);

}  // namespace rankrun::comm::tcp
