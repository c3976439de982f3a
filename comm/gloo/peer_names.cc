#include "comm/gloo/peer_names.h"

#include <chrono>
#include <utility>

namespace rankrun::comm {
namespace {

// " [127.0.0.1]:4711" in a longer text, with the space.
std::string AddressIn(const std::string& text) {
  const size_t middle = text.rfind("]:");
  const size_t begin = middle == std::string::npos ? middle : text.rfind(" [", middle);
  if (begin == std::string::npos) return "";
  const size_t end = text.find_first_not_of("0123456789", middle + 2);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

std::string Line(int peer, const std::string& address) {
  return std::to_string(peer) + " " + address + "\n";
}

}  // namespace

PeerNames::PeerNames(store::Store& store, std::string prefix, int global_rank, int world_size)
    : store_(store),
      prefix_(std::move(prefix)),
      global_rank_(global_rank),
      world_size_(world_size) {}

Result<void> PeerNames::Publish(const std::vector<PeerAddress>& addresses) {
  std::string lines;
  for (const auto& [peer, address] : addresses) lines += Line(peer, address);
  return store_.Set(Key(global_rank_), lines);
}

std::string PeerNames::Translate(std::string text) {
  const size_t location_end = text.find("] ");
  if (text.starts_with("[./") && location_end != std::string::npos) text.erase(0, location_end + 2);
  const std::string address = AddressIn(text);
  if (address.empty()) return text;
  const std::optional<int> peer = Find(address.substr(1));
  if (!peer) return text;
  text.erase(text.find(address), address.size());
  return "lost rank " + std::to_string(*peer) + ": " + text;
}

std::optional<int> PeerNames::Find(const std::string& address) {
  const std::string wanted = Line(global_rank_, address);
  for (int r = 0; r < world_size_; ++r) {
    const std::string key = Key(r);
    const auto exists = store_.Check(std::span(&key, 1));
    if (!exists) return std::nullopt;
    if (!*exists) continue;
    const auto lines = store_.Get(key, std::chrono::seconds(1));
    if (lines && ("\n" + *lines).find("\n" + wanted) != std::string::npos) return r;
  }
  return std::nullopt;
}

std::string PeerNames::Key(int global_rank) const {
  return prefix_ + "/names/" + std::to_string(global_rank);
}

}  // namespace rankrun::comm
