#include "store/server/unidentified.h"

#include <sys/resource.h>

#include <algorithm>

namespace rankrun::store {

UnidentifiedLimits WithinOpenFiles(UnidentifiedLimits limits) {
  constexpr size_t kPart = 8;
  constexpr size_t kMin = 8;
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return limits;
  size_t most = std::max(kMin, static_cast<size_t>(files.rlim_cur) / kPart);
  limits.in_all = std::min(limits.in_all, most);
  limits.per_network = std::min(limits.per_network, most);
  return limits;
}

std::optional<uint64_t> Unidentified::Enter(uint64_t id, const SocketAddress& peer, TimePoint now) {
  const AddressBytes network = peer.Network();
  auto own = connections_.find(network);
  auto crowded = connections_.end();
  if (own != connections_.end() && own->second.size() >= limits_.per_network) {
    crowded = own;
  } else if (networks_.size() >= limits_.in_all) {
    crowded = std::ranges::max_element(connections_, {},
                                       [](const auto& each) { return each.second.size(); });
  }
  std::optional<uint64_t> replaced;
  if (crowded != connections_.end()) {
    replaced = *crowded->second.begin();
    if (now - networks_.at(*replaced).begin < limits_.chance) return id;
    Leave(*replaced);
  }
  connections_[network].insert(id);
  networks_.emplace(id, Since{network, now});
  return replaced;
}

std::optional<Unidentified::Oldest> Unidentified::oldest() const {
  if (networks_.empty()) return std::nullopt;
  const auto& [id, since] = *networks_.begin();
  return Oldest{id, since.begin};
}

void Unidentified::Leave(uint64_t id) {
  auto found = networks_.find(id);
  if (found == networks_.end()) return;
  auto network = connections_.find(found->second.network);
  network->second.erase(id);
  if (network->second.empty()) connections_.erase(network);
  networks_.erase(found);
}

}  // namespace rankrun::store
