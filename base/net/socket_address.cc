#include "base/net/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/net/host_port.h"

namespace rankrun {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

Result<AddressList> LookUp(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status == 0) return AddressList(found);
  std::string what = "look up " + host;
  if (status == EAI_SYSTEM) return SystemError(what, errno);
  return Error{status == EAI_NONAME ? ErrorCode::kNotFound : ErrorCode::kSystem,
               what + ": " + gai_strerror(status)};
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

Result<sockaddr_storage> NameOf(int socket_fd, NameFunction name, std::string_view what) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (name(socket_fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return SystemError(what, errno);
  }
  return storage;
}

}  // namespace

Result<SocketAddress> SocketAddress::FromNumeric(const std::string& address, uint16_t port) {
  auto found = LookUp(address, port, AI_NUMERICHOST);
  if (!found) {
    return Error{ErrorCode::kInvalid, "\"" + address + "\" is not an IPv4 or IPv6 address"};
  }
  return FromRaw((*found)->ai_addr);
}

Result<std::vector<SocketAddress>> SocketAddress::Resolve(const std::string& host, uint16_t port) {
  auto found = LookUp(host, port, 0);
  if (!found) return std::move(found).error();
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = found->get(); entry != nullptr; entry = entry->ai_next) {
    addresses.push_back(FromRaw(entry->ai_addr));
  }
  return addresses;
}

SocketAddress SocketAddress::FromRaw(const sockaddr* raw) {
  SocketAddress address;
  address.storage_.ss_family = raw->sa_family;
  std::memcpy(&address.storage_, raw, address.raw_size());
  return address;
}

Result<SocketAddress> SocketAddress::LocalOf(int socket_fd) {
  auto storage = NameOf(socket_fd, getsockname, "read the local address of a socket");
  if (!storage) return std::move(storage).error();
  SocketAddress address;
  address.storage_ = *storage;
  return address;
}

Result<SocketAddress> SocketAddress::PeerOf(int socket_fd) {
  auto storage = NameOf(socket_fd, getpeername, "read the peer's address of a socket");
  if (!storage) return std::move(storage).error();
  SocketAddress address;
  address.storage_ = *storage;
  return address;
}

uint16_t SocketAddress::port() const {
  // sin_port and sin6_port have the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

SocketAddress SocketAddress::WithPort(uint16_t port) const {
  SocketAddress copy = *this;
  reinterpret_cast<sockaddr_in*>(&copy.storage_)->sin_port = htons(port);
  return copy;
}

AddressBytes SocketAddress::Bytes() const {
  AddressBytes bytes{};
  if (family() == AF_INET6) {
    auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
    std::memcpy(bytes.data(), &v6->sin6_addr, sizeof v6->sin6_addr);
  } else {
    auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    bytes[10] = bytes[11] = 0xFF;
    std::memcpy(&bytes[12], &v4->sin_addr, sizeof v4->sin_addr);
  }
  return bytes;
}

AddressBytes SocketAddress::Network() const {
  AddressBytes bytes = Bytes();
  constexpr AddressBytes kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  bool is_v4 = std::equal(kMapped.begin(), kMapped.begin() + 12, bytes.begin());
  if (!is_v4) std::fill(bytes.begin() + 8, bytes.end(), uint8_t{0});
  return bytes;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) {
    auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return v6->sin6_addr.s6_addr[12] == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

std::string SocketAddress::Host() const {
  char host[NI_MAXHOST];
  if (getnameinfo(raw(), raw_size(), host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  return host;
}

std::string SocketAddress::ToString() const { return HostPortText(Host(), port()); }

socklen_t SocketAddress::raw_size() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace rankrun
