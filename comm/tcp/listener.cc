#include "comm/tcp/listener.h"

#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/net/network_interface.h"
#include "comm/tcp/peer_address.h"
#include "comm/tcp/socket.h"

namespace rankrun::comm::tcp {
namespace {

// The kernel reduces it to net.core.somaxconn.
constexpr int kBacklog = 4096;

// Returns the elements of "eth0,eth1"; none for "".
std::vector<std::string> NamesIn(const std::string& list) {
  std::vector<std::string> names;
  if (list.empty()) return names;
  for (size_t begin = 0;;) {
    size_t comma = list.find(',', begin);
    names.push_back(list.substr(begin, comma - begin));
    if (comma == std::string::npos) return names;
    begin = comma + 1;
  }
}

Result<Fd> ListenAt(const SocketAddress& address, const DescriptorNeed& need) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return SocketError("open a socket", errno, need);
  if (bind(fd.get(), address.raw(), address.raw_size()) != 0 || listen(fd.get(), kBacklog) != 0) {
    return SocketError("bind " + address.Host(), errno, need);
  }
  return fd;
}

// Adds a socket at the first address of `candidates` that can be used.
Result<void> AddFirst(const Result<std::vector<SocketAddress>>& candidates,
                      const DescriptorNeed& need, Listeners& listeners) {
  if (!candidates) return candidates.error();
  Error reason{ErrorCode::kSystem, "no address"};
  for (const SocketAddress& candidate : *candidates) {
    auto fd = ListenAt(candidate, need);
    if (!fd) {
      reason = std::move(fd).error();
      continue;
    }
    auto address = SocketAddress::LocalOf(fd->get());
    if (!address) return std::move(address).error();
    listeners.addresses.push_back(*address);
    listeners.sockets.push_back(*std::move(fd));
    return {};
  }
  return reason;
}

Error ListenError(Error error, std::string_view what) {
  if (error.code != ErrorCode::kExhausted) error.code = ErrorCode::kSystem;
  return std::move(error).In(what);
}

Result<void> AddHost(const std::string& host, const DescriptorNeed& need, Listeners& listeners) {
  auto ok = AddFirst(SocketAddress::Resolve(host, 0), need, listeners);
  if (!ok) return ListenError(std::move(ok).error(), "listen at " + host);
  return {};
}

Result<void> AddInterface(const std::string& name, const DescriptorNeed& need,
                          Listeners& listeners) {
  const std::string what = "listen at interface " + name + " (GLOO_SOCKET_IFNAME)";
  if (if_nametoindex(name.c_str()) == 0) return SystemError(what, errno);
  auto ok = AddFirst(AddressesOfInterface(name), need, listeners);
  if (!ok) return ListenError(std::move(ok).error(), what);
  return {};
}

}  // namespace

Result<Listeners> Listen(const BackendConfig& config) {
  std::vector<std::string> names = NamesIn(config.network_interface);
  if (names.size() > kMaxInterfaces) {
    return Error{ErrorCode::kInvalid, "GLOO_SOCKET_IFNAME names " + std::to_string(names.size()) +
                                          " interfaces: want at most " +
                                          std::to_string(kMaxInterfaces)};
  }
  DescriptorNeed need =
      NeedOf(config.global_ranks.size(), names.empty() ? size_t{1} : names.size());
  Listeners listeners{.interfaces = static_cast<uint32_t>(names.size())};
  if (names.empty()) {
    if (auto ok = AddHost(config.host, need, listeners); !ok) return std::move(ok).error();
  }
  for (const std::string& name : names) {
    if (auto ok = AddInterface(name, need, listeners); !ok) return std::move(ok).error();
  }
  return listeners;
}

}  // namespace rankrun::comm::tcp
