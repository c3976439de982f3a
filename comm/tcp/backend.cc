#include "comm/tcp/backend.h"

#include <utility>
#include <vector>

#include "base/net/socket_address.h"
#include "comm/tcp/connect.h"

namespace rankrun::comm::tcp {
namespace {

// Returns whether the peer at the other end is on this host.
bool IsOnThisHost(int socket) {
  auto local = SocketAddress::LocalOf(socket);
  auto peer = SocketAddress::PeerOf(socket);
  return local && peer && local->Bytes() == peer->Bytes();
}

}  // namespace

Result<std::unique_ptr<stream::StreamBackend>> CreateStreamBackend(const BackendConfig& config) {
  auto sockets = ConnectAll(config);
  if (!sockets) return std::move(sockets).error();
  std::vector<stream::PeerConnections> peers;
  int ranks_here = 1;
  for (PeerSockets& peer : *sockets) {
    stream::PeerConnections& connections = peers.emplace_back();
    if (!peer.control) continue;  // this rank
    if (IsOnThisHost(peer.control.get())) ranks_here += 1;
    connections.control = stream::ConnectionOver(std::move(peer.control));
    for (Fd& socket : peer.data)
      connections.data.push_back(stream::ConnectionOver(std::move(socket)));
  }
  return std::make_unique<stream::StreamBackend>(config, std::move(peers), ranks_here);
}

Result<std::unique_ptr<Backend>> CreateBackend(const BackendConfig& config) {
  auto backend = CreateStreamBackend(config);
  if (!backend) return std::move(backend).error();
  return std::unique_ptr<Backend>(*std::move(backend));
}

}  // namespace rankrun::comm::tcp
