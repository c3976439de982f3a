#include "agent/store_clients.h"

#include <algorithm>
#include <set>

namespace rankrun::agent {
namespace {

// Of a node: there are hosts with thousands, of services or containers.
constexpr size_t kMostOfNode = 64;
// Of all nodes together, in bytes: half a message.
constexpr size_t kMostOfAll = size_t{512} << 10;

}  // namespace

std::vector<std::string> RelevantAddresses(std::vector<std::string> own, const AddressBytes& peer) {
  if (own.size() > kMostOfNode) return {};
  bool came_by_one = false;
  for (const std::string& text : own) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (!address) return {};
    came_by_one |= address->Bytes() == peer;
  }
  if (!came_by_one) own.clear();
  return own;
}

std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes) {
  constexpr size_t kForEach = 3;  // besides its text
  std::set<std::string> all;
  size_t bytes = 0;
  for (const std::vector<std::string>* addresses : nodes) {
    if (addresses->empty()) return {};
    for (const std::string& address : *addresses) {
      if (all.insert(address).second) bytes += kForEach + address.size();
    }
  }
  if (bytes > kMostOfAll) return {};
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
