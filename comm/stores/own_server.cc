#include "comm/stores/own_server.h"

#include <utility>

#include "base/net/listen_socket.h"

namespace rankrun::comm {
namespace {

Result<std::shared_ptr<store::HostedServer>> Start(store::ServerOptions options) {
  auto server = store::HostedServer::Start(std::move(options));
  if (!server) return std::move(server).error();
  return std::shared_ptr<store::HostedServer>(*std::move(server));
}

// Returns an address of this host at which a socket that is bound to `bound`
// accepts connections.
std::string HostToReach(const SocketAddress& bound) {
  std::string host = bound.Host();
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

Result<OwnServer> ServeStore(const std::string& host, uint16_t port) {
  bool loopback = IsLoopback(host);
  auto v4 = SocketAddress::FromNumeric(loopback ? "127.0.0.1" : "0.0.0.0", port);
  if (!v4) return std::move(v4).error();
  auto v6 = SocketAddress::FromNumeric(loopback ? "::1" : "::", port);
  if (!v6) return std::move(v6).error();
  store::ServerOptions options;
  options.addresses = {{.address = *v4}, {.address = *v6, .optional = true}};
  auto server = Start(std::move(options));
  if (!server) return std::move(server).error();
  return OwnServer{.server = *std::move(server), .host = "127.0.0.1", .is_local = loopback};
}

Result<OwnServer> ServeStoreOn(int listen_fd) {
  auto bound = ListenSocketAddress(listen_fd);
  if (!bound) return std::move(bound).error();
  store::ServerOptions options;
  options.listen_fd = listen_fd;
  auto server = Start(std::move(options));
  if (!server) return std::move(server).error();
  return OwnServer{
      .server = *std::move(server), .host = HostToReach(*bound), .is_local = bound->is_loopback()};
}

}  // namespace rankrun::comm
