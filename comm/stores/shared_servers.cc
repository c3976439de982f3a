#include "comm/stores/shared_servers.h"

#include "base/net/host_port.h"
#include "base/net/listen_socket.h"
#include "comm/core/home_process.h"

namespace rankrun::comm {
namespace {

// Returns "this process serves a store at port 29500<kind>: want <wanted>".
Error Occupied(ErrorCode code, uint16_t port, const std::string& kind, const std::string& wanted) {
  return Error{code, "this process serves a store at port " + std::to_string(port) + kind +
                         ": want " + wanted};
}

}  // namespace

SharedServers& SharedServers::OfThisProcess() {
  static constinit PerProcess<SharedServers> servers;
  return servers.Get();
}

Result<OwnServer> SharedServers::At(const std::string& host, uint16_t port) {
  MutexLock lock(mutex_);
  Key key = port;
  auto found = servers_.find(key);
  if (port == 0 || found == servers_.end()) {
    auto started = ServeStore(host, port);
    if (!started) return started;
    return AddAndUse(*std::move(started));
  }
  bool is_local = found->second.own.is_local;
  if (is_local == IsLoopback(host)) return Use(key);
  return Occupied(ErrorCode::kInvalid, port, is_local ? " of loopback only" : " of all addresses",
                  "another port than for " + HostPortText(host, port));
}

Result<OwnServer> SharedServers::On(int listen_fd) {
  MutexLock lock(mutex_);
  auto bound = ListenSocketAddress(listen_fd);
  if (!bound) return std::move(bound).error();
  if (servers_.contains(bound->port())) {
    return Occupied(ErrorCode::kInvalid, bound->port(), "", "a socket with another port");
  }
  auto started = ServeStoreOn(listen_fd);
  if (!started) return started;
  return AddAndUse(*std::move(started));
}

Result<OwnServer> SharedServers::AddAndUse(OwnServer own) {
  Key key = own.server->port();
  // A port that the kernel draws may be that of a socket at another address.
  if (servers_.contains(key)) {
    return Occupied(ErrorCode::kSystem, key, "", "another try, or a fixed port");
  }
  servers_[key] = {.own = std::move(own)};
  return Use(key);
}

OwnServer SharedServers::Use(const Key& key) {
  Entry& entry = servers_[key];
  entry.users += 1;
  OwnServer used = entry.own;
  used.server = {entry.own.server.get(), [this, key](store::HostedServer*) { Leave(key); }};
  return used;
}

// Ends a server under the lock, so that its port is free for the next one.
void SharedServers::Leave(const Key& key) {
  MutexLock lock(mutex_);
  if (--servers_[key].users == 0) servers_.erase(key);
}

}  // namespace rankrun::comm
