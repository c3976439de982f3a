#include "store/server/one_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"

namespace rankrun::store {
namespace {

using Listeners = std::vector<std::unique_ptr<Listener>>;

// Maximum number of attempts to find a port that is free on all addresses. The
// kernel draws each port for the first address; it may be taken on another one.
constexpr int kPortDraws = 16;

// Returns whether this host has the address, whatever its ports are used for.
bool HostHasAddress(const SocketAddress& address) {
  Fd probe(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return errno != EAFNOSUPPORT;
  SocketAddress any_port = address.WithPort(0);
  if (bind(probe.get(), any_port.raw(), any_port.raw_size()) == 0) return true;
  return errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT;
}

Result<Listeners> TryListen(Loop& loop, const std::vector<SocketAddress>& addresses,
                            const std::function<void(std::unique_ptr<Stream>)>& on_accept) {
  Listeners listeners;
  uint16_t port = addresses.front().port();
  for (const SocketAddress& address : addresses) {
    auto listener = Listener::Open(loop, address.WithPort(port), on_accept);
    if (!listener) return std::move(listener).error();
    port = (*listener)->address().port();
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

}  // namespace

Result<Listeners> ListenOnOnePort(Loop& loop, const std::vector<BindAddress>& addresses,
                                  const std::function<void(std::unique_ptr<Stream>)>& on_accept) {
  std::vector<SocketAddress> present;
  for (const BindAddress& wanted : addresses) {
    if (wanted.address.port() != addresses.front().address.port()) {
      return Error{ErrorCode::kInvalid, "listen on " + wanted.address.ToString() +
                                            ": another port than that of " +
                                            addresses.front().address.ToString()};
    }
    if (!wanted.optional || HostHasAddress(wanted.address)) present.push_back(wanted.address);
  }
  if (present.empty()) {
    return Error{ErrorCode::kSystem, "listen: this host has none of the addresses asked for"};
  }
  // A fixed port or a single address fails for good. With port 0 and several
  // addresses another port may be free on all of them, so any failure is
  // retried.
  bool draw = present.front().port() == 0 && present.size() > 1;
  auto listeners = TryListen(loop, present, on_accept);
  for (int draws = 1; !listeners && draw && draws < kPortDraws; ++draws) {
    listeners = TryListen(loop, present, on_accept);
  }
  return listeners;
}

Result<Listeners> ListenOnSocket(Loop& loop, Fd socket,
                                 const std::function<void(std::unique_ptr<Stream>)>& on_accept) {
  auto listener = Listener::Adopt(loop, std::move(socket), on_accept);
  if (!listener) return std::move(listener).error();
  Listeners listeners;
  listeners.push_back(*std::move(listener));
  return listeners;
}

}  // namespace rankrun::store
