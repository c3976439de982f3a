#include "agent/health/worker_peers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/health/connections.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxDials = 4;  // of a worker

// The sockets of all workers.
struct Owners {
  // By the number that both ends of a connection have; a child may share the socket of its parent.
  std::multimap<uint64_t, std::pair<uint64_t, WorkerSample*>> by_connection{};  // with the inode
  std::map<int, std::vector<uint64_t>> by_rank{};  // inodes of connections
  std::set<std::pair<int, uint16_t>> servers{};    // ranks, and ports at which they listen
};

void AddSockets(WorkerSample& worker, const ConnectionsByInode& all, Owners& owners) {
  for (const auto& [descriptor, inode] : SocketsOf(worker.pid)) {
    const auto found = all.find(inode);
    if (found == all.end()) continue;
    const TcpConnection& connection = found->second;
    if (connection.state == kListening) {
      owners.servers.emplace(worker.global_rank, connection.local.port);
    } else if (connection.state != kSynSent) {
      owners.by_connection.emplace(connection.id, std::pair(inode, &worker));
      owners.by_rank[worker.global_rank].push_back(inode);
    } else if (worker.dials.size() < kMaxDials) {
      const std::string address = EndInWords(connection.remote);
      if (std::ranges::count(worker.dials, address) == 0) worker.dials.push_back(address);
    }
  }
}

// Returns the inode of the socket in whose call the main thread is; 0: none.
uint64_t AwaitedSocket(const WorkerSample& worker) {
  constexpr std::string_view kPrefix = "socket:[";
  const bool waits = worker.process && worker.process->call == CallKind::kPeer &&
                     worker.process->file.starts_with(kPrefix);
  return waits ? std::strtoull(worker.process->file.c_str() + kPrefix.size(), nullptr, 10) : 0;
}

// Returns the worker at the other end of a connection; nothing if that is no worker.
std::optional<PeerWait> PeerAt(uint64_t inode, const ConnectionsByInode& all,
                               const Owners& owners) {
  const auto awaited = all.find(inode);
  if (awaited == all.end()) return std::nullopt;
  const ConnectionEnd& remote = awaited->second.remote;
  const auto [begin, end] = owners.by_connection.equal_range(awaited->second.id);
  for (auto other = begin; other != end; ++other) {
    if (other->second.first == inode) continue;
    const int rank = other->second.second->global_rank;
    return PeerWait{.global_rank = rank,
                    .address = EndInWords(remote),
                    .is_server = owners.servers.contains({rank, remote.port})};
  }
  return std::nullopt;
}

// A poll does not show its connection.
std::optional<PeerWait> OnlyServer(const WorkerSample& worker, const ConnectionsByInode& all,
                                   const Owners& owners) {
  const auto own = owners.by_rank.find(worker.global_rank);
  if (own == owners.by_rank.end()) return std::nullopt;
  std::optional<PeerWait> server;
  for (uint64_t inode : own->second) {
    auto peer = PeerAt(inode, all, owners);
    if (!peer || !peer->is_server) continue;
    if (server && server->address != peer->address) return std::nullopt;
    server = std::move(peer);
  }
  if (server) server->is_guess = true;
  return server;
}

std::optional<PeerWait> WaitOf(const WorkerSample& worker, const ConnectionsByInode& all,
                               const Owners& owners) {
  if (auto inode = AwaitedSocket(worker)) return PeerAt(inode, all, owners);
  const bool polls = worker.process && worker.process->call == CallKind::kPoll;
  return polls ? OnlyServer(worker, all, owners) : std::nullopt;
}

}  // namespace

void AddPeers(const std::vector<WorkerSample*>& workers) {
  const auto connections = ReadConnections(kConnected | kSynSent | kListening);
  if (!connections) return;
  Owners owners;
  for (WorkerSample* worker : workers) AddSockets(*worker, *connections, owners);
  for (WorkerSample* worker : workers) worker->peer_wait = WaitOf(*worker, *connections, owners);
}

}  // namespace rankrun::agent
