#include "agent/coordination/store_allowlist.h"

#include <algorithm>
#include <set>

namespace rankrun::agent {
namespace {

// Limit per node. Hosts with many services or containers have thousands.
constexpr size_t kMaxOfNode = 64;
// Limit for all nodes together, in bytes: half a message.
constexpr size_t kMaxOfAll = size_t{512} << 10;

// Returns the problem of the addresses that a node reports; empty: none.
std::string ProblemOf(const std::vector<std::string>& own, const AddressBytes& peer) {
  if (own.size() > kMaxOfNode) {
    return "has " + std::to_string(own.size()) + " addresses, more than " +
           std::to_string(kMaxOfNode);
  }
  bool has_peer = false;
  for (const std::string& text : own) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (!address) return "reports an invalid address";
    has_peer |= address->Bytes() == peer;
  }
  return has_peer ? "" : "has other addresses than that of its connection (NAT, or a proxy)";
}

// `max_of_node`: number of addresses that count for each node.
std::vector<std::string> FirstOfAll(const std::vector<const std::vector<std::string>*>& nodes,
                                    size_t max_of_node) {
  constexpr size_t kOverhead = 3;  // bytes of the encoding per address
  std::set<std::string> all;
  size_t bytes = 0;
  for (const std::vector<std::string>* addresses : nodes) {
    for (size_t i = 0; i < std::min(max_of_node, addresses->size()); ++i) {
      const std::string& address = (*addresses)[i];
      if (all.insert(address).second) bytes += kOverhead + address.size();
    }
  }
  if (bytes > kMaxOfAll) return {};
  return {all.begin(), all.end()};
}

}  // namespace

NodeAddresses RelevantAddresses(std::vector<std::string> own, const SocketAddress& peer,
                                const std::string& dialled) {
  auto gateway = SocketAddress::FromNumeric(dialled, 0);
  bool is_gateway = gateway && gateway->Bytes() == peer.Bytes();
  bool is_known = std::ranges::find(own, peer.Host()) != own.end();
  if (is_gateway && !is_known && !own.empty()) own.push_back(peer.Host());
  std::string problem = ProblemOf(own, peer.Bytes());
  if (!problem.empty()) return {{peer.Host()}, std::move(problem)};
  std::stable_partition(own.begin(), own.end(), [&](const std::string& text) {
    return SocketAddress::FromNumeric(text, 0)->Bytes() == peer.Bytes();
  });
  return {std::move(own), ""};
}

std::vector<std::string> AddressesOfAll(const std::vector<const std::vector<std::string>*>& nodes) {
  bool is_known = std::ranges::none_of(nodes, [](const auto* one) { return one->empty(); });
  if (!is_known) return {};
  auto all = FirstOfAll(nodes, kMaxOfNode);
  return all.empty() ? FirstOfAll(nodes, 1) : all;
}

std::vector<AddressRange> ClientRanges(const std::vector<std::string>& clients,
                                       const std::vector<std::string>& own) {
  if (clients.empty()) return {};
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
