#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun {

// An IPv6 address, or an IPv4 address mapped into IPv6.
using AddressBytes = std::array<uint8_t, 16>;

// An IPv4 or IPv6 address with a port. A value.
class SocketAddress {
 public:
  SocketAddress() = default;

  // Parses a numeric address: "127.0.0.1", "::1", "fe80::1%eth0". Looks up no
  // names.
  // Errors: kInvalid.
  static Result<SocketAddress> FromNumeric(const std::string& address, uint16_t port);

  // Returns all addresses of a host name or numeric address, in the resolver's
  // order. Blocks on the resolver, which has time-outs of its own
  // (resolv.conf).
  // Errors: kNotFound if the name has no address, otherwise kSystem.
  static Result<std::vector<SocketAddress>> Resolve(const std::string& host, uint16_t port);

  // Copies an AF_INET or AF_INET6 address.
  static SocketAddress FromRaw(const sockaddr* raw);

  // Return the local and the peer's address of a connected socket.
  static Result<SocketAddress> LocalOf(int socket_fd);
  static Result<SocketAddress> PeerOf(int socket_fd);

  uint16_t port() const;
  SocketAddress WithPort(uint16_t port) const;
  int family() const { return storage_.ss_family; }
  bool is_loopback() const;
  AddressBytes Bytes() const;
  // Returns an IPv4 address, or the /64 of an IPv6 address: one subscriber has
  // at least that many.
  AddressBytes Network() const;
  std::string Host() const;      // "127.0.0.1", "::1"
  std::string ToString() const;  // "127.0.0.1:29500", "[::1]:29500"

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t raw_size() const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace rankrun
