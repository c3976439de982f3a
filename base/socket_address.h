#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun {

// An IPv6 address, or the IPv6 address that an IPv4 one is mapped to.
using AddressBytes = std::array<uint8_t, 16>;

// An IPv4 or IPv6 address with a port. A value.
class SocketAddress {
 public:
  SocketAddress() = default;

  // A numeric address: "127.0.0.1", "::1", "fe80::1%eth0". No name look-up.
  // Errors: kInvalid.
  static Result<SocketAddress> FromNumeric(const std::string& address, uint16_t port);

  // All addresses of a host name or numeric address, in the resolver's order.
  // Blocks on the resolver, which has time-outs of its own (resolv.conf).
  // Errors: kNotFound when the name has no address, kSystem else.
  static Result<std::vector<SocketAddress>> Resolve(const std::string& host, uint16_t port);

  // A copy of an AF_INET or AF_INET6 address.
  static SocketAddress FromRaw(const sockaddr* raw);

  // The local or the peer's address of a connected socket.
  static Result<SocketAddress> LocalOf(int socket_fd);
  static Result<SocketAddress> PeerOf(int socket_fd);

  uint16_t port() const;
  SocketAddress WithPort(uint16_t port) const;
  int family() const { return storage_.ss_family; }
  bool is_loopback() const;
  AddressBytes Bytes() const;
  std::string Host() const;      // "127.0.0.1", "::1"
  std::string ToString() const;  // "127.0.0.1:29500", "[::1]:29500"

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t raw_size() const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace rankrun
