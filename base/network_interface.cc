#include "base/network_interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace rankrun {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

unsigned ScopeOf(const sockaddr* address) {
  return reinterpret_cast<const sockaddr_in6*>(address)->sin6_scope_id;
}

// The kernel's list has no ports.
bool Has(const ifaddrs& interface, const SocketAddress& address) {
  if (interface.ifa_addr == nullptr || interface.ifa_addr->sa_family != address.family()) {
    return false;
  }
  const SocketAddress own = SocketAddress::FromRaw(interface.ifa_addr);
  if (own.Bytes() != address.Bytes()) return false;
  if (address.family() != AF_INET6 || ScopeOf(address.raw()) == 0) return true;
  return ScopeOf(address.raw()) == ScopeOf(own.raw());
}

// What a socket for both families says of an IPv4 address.
SocketAddress Unmapped(const SocketAddress& address) {
  if (address.family() != AF_INET6) return address;
  const AddressBytes bytes = address.Bytes();
  in6_addr v6;
  std::memcpy(&v6, bytes.data(), sizeof v6);
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return address;
  SocketAddress v4;
  v4.raw()->sa_family = AF_INET;
  std::memcpy(&reinterpret_cast<sockaddr_in*>(v4.raw())->sin_addr, &bytes[12], 4);
  return v4;
}

}  // namespace

Result<std::string> InterfaceOf(const SocketAddress& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return SystemError("list the network interfaces", errno);
  std::unique_ptr<ifaddrs, FreeInterfaces> owned(list);
  const SocketAddress wanted = Unmapped(address);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (Has(*entry, wanted)) return std::string(entry->ifa_name);
  }
  return Error{ErrorCode::kNotFound, "no network interface has the address " + address.Host()};
}

}  // namespace rankrun
