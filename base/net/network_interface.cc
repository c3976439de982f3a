#include "base/net/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

namespace rankrun {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

using Interfaces = std::unique_ptr<ifaddrs, FreeInterfaces>;

Result<Interfaces> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return SystemError("list the network interfaces", errno);
  return Interfaces(list);
}

unsigned ScopeOf(const sockaddr* address) {
  return reinterpret_cast<const sockaddr_in6*>(address)->sin6_scope_id;
}

// Ignores the port, which the kernel's list does not have.
bool Has(const ifaddrs& interface, const SocketAddress& address) {
  if (interface.ifa_addr == nullptr || interface.ifa_addr->sa_family != address.family()) {
    return false;
  }
  SocketAddress own = SocketAddress::FromRaw(interface.ifa_addr);
  if (own.Bytes() != address.Bytes()) return false;
  if (address.family() != AF_INET6 || ScopeOf(address.raw()) == 0) return true;
  return ScopeOf(address.raw()) == ScopeOf(own.raw());
}

// Returns the IPv4 address that an IPv6 address is mapped from, as a socket for
// both families reports it; otherwise the address itself.
SocketAddress Unmapped(const SocketAddress& address) {
  if (address.family() != AF_INET6) return address;
  AddressBytes bytes = address.Bytes();
  in6_addr v6;
  std::memcpy(&v6, bytes.data(), sizeof v6);
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return address;
  SocketAddress v4;
  v4.raw()->sa_family = AF_INET;
  std::memcpy(&reinterpret_cast<sockaddr_in*>(v4.raw())->sin_addr, &bytes[12], 4);
  return v4;
}

// Returns the place of an address in AddressesOfInterface.
int OrderOf(const SocketAddress& address) {
  if (address.family() == AF_INET) return 0;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.raw());
  return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 2 : 1;
}

}  // namespace

Result<std::string> InterfaceOf(const SocketAddress& address) {
  auto list = ListInterfaces();
  if (!list) return std::move(list).error();
  SocketAddress wanted = Unmapped(address);
  for (const ifaddrs* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if (Has(*entry, wanted)) return std::string(entry->ifa_name);
  }
  return Error{ErrorCode::kNotFound, "no network interface has the address " + address.Host()};
}

bool IsThisHost(const std::vector<SocketAddress>& addresses) {
  return std::ranges::any_of(addresses, [](const SocketAddress& address) {
    return address.is_loopback() || InterfaceOf(address);
  });
}

Result<bool> IsThisHost(const std::string& host) {
  auto addresses = SocketAddress::Resolve(host, 0);
  if (!addresses) return std::move(addresses).error();
  return IsThisHost(*addresses);
}

Result<std::vector<SocketAddress>> AddressesOfInterface(const std::string& name) {
  if (if_nametoindex(name.c_str()) == 0) return SystemError("find interface " + name, errno);
  auto list = ListInterfaces();
  if (!list) return std::move(list).error();
  std::vector<SocketAddress> addresses;
  for (const ifaddrs* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || name != entry->ifa_name) continue;
    int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    addresses.push_back(SocketAddress::FromRaw(entry->ifa_addr));
  }
  if (addresses.empty()) {
    return Error{ErrorCode::kNotFound, "interface " + name + " has no IPv4 or IPv6 address"};
  }
  std::stable_sort(addresses.begin(), addresses.end(),
                   [](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
  return addresses;
}

Result<std::vector<std::string>> InterfaceAddresses() {
  auto list = ListInterfaces();
  if (!list) return std::move(list).error();
  std::set<std::string> addresses;
  for (const ifaddrs* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const void* bytes = nullptr;
    int family = entry->ifa_addr->sa_family;
    if (family == AF_INET) bytes = &reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN];
    if (bytes == nullptr || inet_ntop(family, bytes, text, sizeof text) == nullptr) continue;
    addresses.insert(text);
  }
  return std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace rankrun
