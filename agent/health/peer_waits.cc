#include "agent/health/peer_waits.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace rankrun::agent {
namespace {

using WorkersByRank = std::map<int, WorkerSample>;

bool Waits(const WorkerSample& worker) {
  return worker.work && worker.work->awaited_connection != 0;
}

// The two lowest ranks that have a connection.
struct Ends {
  std::optional<int> first;
  std::optional<int> second;
};

// Returns the ends of each connection for which a worker waits.
std::unordered_map<uint64_t, Ends> AwaitedConnections(const WorkersByRank& workers) {
  std::unordered_map<uint64_t, Ends> awaited;
  for (const auto& [rank, worker] : workers) {
    if (Waits(worker)) awaited.try_emplace(worker.work->awaited_connection);
  }
  for (const auto& [rank, worker] : workers) {
    if (!worker.work) continue;
    for (const PeerConnection& connection : worker.work->connections) {
      const auto found = awaited.find(connection.id);
      if (found == awaited.end() || found->second.first == rank) continue;
      Ends& ends = found->second;
      auto& end = ends.first ? ends.second : ends.first;
      if (!end) end = rank;
    }
  }
  return awaited;
}

// Returns the awaited worker of each waiter whose connection has one at its other end.
std::unordered_map<int, int> PeerWaits(const WorkersByRank& workers) {
  const auto connections = AwaitedConnections(workers);
  std::unordered_map<int, int> waits;
  for (const auto& [rank, worker] : workers) {
    if (!Waits(worker)) continue;
    const Ends& ends = connections.at(worker.work->awaited_connection);
    const auto peer = ends.first == rank ? ends.second : ends.first;
    if (peer) waits[rank] = *peer;
  }
  return waits;
}

// Whether each chain of waits ends at this worker.
bool AllEndAt(int last, const std::unordered_map<int, int>& waits) {
  std::unordered_set<int> reaching = {last};
  for (const auto& [waiter, peer] : waits) {
    std::vector<int> path;
    for (int rank = waiter; !reaching.contains(rank);) {
      const auto wait = waits.find(rank);
      const bool is_cycle = path.size() > waits.size();
      if (wait == waits.end() || is_cycle) return false;
      path.push_back(rank);
      rank = wait->second;
    }
    reaching.insert(path.begin(), path.end());
  }
  return true;
}

}  // namespace

std::optional<int> AwaitedByAll(const WorkersByRank& workers) {
  const auto waits = PeerWaits(workers);
  std::optional<int> found;
  for (const auto& [rank, worker] : workers) {
    if (worker.has_ended || waits.contains(rank)) continue;
    if (found) return std::nullopt;
    found = rank;
  }
  if (!found || waits.empty() || !AllEndAt(*found, waits)) return std::nullopt;
  return found;
}

}  // namespace rankrun::agent
