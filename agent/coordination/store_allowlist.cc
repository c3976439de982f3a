#include "agent/coordination/store_allowlist.h"

#include <algorithm>
#include <set>

namespace rankrun::agent {
namespace {

// Limit per node. Hosts with many services or containers have thousands.
constexpr size_t kMaxOfNode = 64;
// Limit for all nodes together, in bytes: half a message.
constexpr size_t kMaxOfAll = size_t{512} << 10;

}  // namespace

std::vector<std::string> RelevantAddresses(std::vector<std::string> own, const AddressBytes& peer) {
  if (own.size() > kMaxOfNode) return {};
  bool has_peer = false;
  for (const std::string& text : own) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (!address) return {};
    has_peer |= address->Bytes() == peer;
  }
  if (!has_peer) own.clear();
  return own;
}

std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes) {
  constexpr size_t kOverhead = 3;  // bytes of the encoding per address
  std::set<std::string> all;
  size_t bytes = 0;
  for (const std::vector<std::string>* addresses : nodes) {
    if (addresses->empty()) return {};
    for (const std::string& address : *addresses) {
      if (all.insert(address).second) bytes += kOverhead + address.size();
    }
  }
  if (bytes > kMaxOfAll) return {};
  return {all.begin(), all.end()};
}

std::vector<AddressRange> ClientRanges(const std::vector<std::string>& clients,
                                       const std::vector<std::string>& own) {
  if (clients.empty() || own.empty()) return {};
  std::vector<AddressRange> ranges{*AddressRange::Parse("127.0.0.0/8"),
                                   *AddressRange::Parse("::1")};
  for (const auto* addresses : {&clients, &own}) {
    for (const std::string& text : *addresses) {
      auto range = AddressRange::Parse(text);
      if (!range) return {};
      ranges.push_back(*range);
    }
  }
  return ranges;
}

}  // namespace rankrun::agent
