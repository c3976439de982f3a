#include "agent/health/peer_waits.h"

#include <map>
#include <set>

namespace rankrun::agent {
namespace {

// Returns the worker at the other end of a connection; nothing if there is none.
std::optional<int> PeerOf(const WorkerSample& waiter, const std::vector<WorkerSample>& workers) {
  for (const WorkerSample& other : workers) {
    if (other.global_rank == waiter.global_rank || !other.work) continue;
    for (const PeerConnection& connection : other.work->connections) {
      if (connection.id == waiter.work->awaited_connection) return other.global_rank;
    }
  }
  return std::nullopt;
}

std::map<int, int> PeerWaits(const std::vector<WorkerSample>& workers) {
  std::map<int, int> waits;  // awaited worker, by waiter
  for (const WorkerSample& worker : workers) {
    if (!worker.work || worker.work->awaited_connection == 0) continue;
    if (auto peer = PeerOf(worker, workers)) waits[worker.global_rank] = *peer;
  }
  return waits;
}

}  // namespace

std::optional<int> AwaitedByAll(const std::vector<WorkerSample>& workers) {
  const std::map<int, int> waits = PeerWaits(workers);
  std::optional<int> found;
  for (const WorkerSample& worker : workers) {
    if (worker.has_ended || waits.contains(worker.global_rank)) continue;
    if (found) return std::nullopt;
    found = worker.global_rank;
  }
  if (!found || waits.empty()) return std::nullopt;
  for (const auto& [waiter, peer] : waits) {
    std::set<int> seen = {waiter};
    int end = peer;
    while (waits.contains(end) && seen.insert(end).second) end = waits.at(end);
    if (end != *found) return std::nullopt;
  }
  return found;
}

}  // namespace rankrun::agent
