#include "comm/tcp/peer_address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

// The text: version, key, number of interfaces, listeners. A listener: 4 or 6,
// port in network order, 4 or 16 bytes of the address.
namespace rankrun::comm::tcp {
namespace {

constexpr unsigned char kVersion = 1;
constexpr unsigned char kIpv4 = 4;
constexpr unsigned char kIpv6 = 6;
constexpr size_t kHead = 2 + kRankKeyBytes;
constexpr size_t kIpv4Offset = 12;  // of an IPv4 address in AddressBytes

Error Damaged() { return {ErrorCode::kProtocol, "the address of a rank in the store is damaged"}; }

std::string Encode(const SocketAddress& listener) {
  bool is_ipv4 = listener.family() == AF_INET;
  AddressBytes bytes = listener.Bytes();
  uint16_t port = listener.port();
  std::string text{static_cast<char>(is_ipv4 ? kIpv4 : kIpv6), static_cast<char>(port >> 8),
                   static_cast<char>(port & 0xFF)};
  text.append(bytes.begin() + (is_ipv4 ? kIpv4Offset : 0), bytes.end());
  return text;
}

unsigned char ByteAt(std::string_view text, size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// Removes a listener from the beginning of `text`.
Result<SocketAddress> TakeListener(std::string_view& text) {
  constexpr size_t kListenerHead = 3;
  if (text.size() < kListenerHead) return Damaged();
  unsigned char kind = ByteAt(text, 0);
  auto port = static_cast<uint16_t>(ByteAt(text, 1) << 8 | ByteAt(text, 2));
  text.remove_prefix(kListenerHead);
  size_t size = kind == kIpv4 ? sizeof(in_addr) : sizeof(in6_addr);
  if ((kind != kIpv4 && kind != kIpv6) || port == 0 || text.size() < size) return Damaged();
  SocketAddress address;
  if (kind == kIpv4) {
    address.raw()->sa_family = AF_INET;
    std::memcpy(&reinterpret_cast<sockaddr_in*>(address.raw())->sin_addr, text.data(), size);
  } else {
    address.raw()->sa_family = AF_INET6;
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(address.raw())->sin6_addr, text.data(), size);
  }
  text.remove_prefix(size);
  return address.WithPort(port);
}

}  // namespace

std::string Encode(const PeerAddress& address) {
  RANKRUN_CHECK(address.interfaces <= kMaxInterfaces &&
                    address.listeners.size() == std::max(address.interfaces, uint32_t{1}),
                "a rank listens at another number of interfaces");
  std::string text{static_cast<char>(kVersion)};
  text.append(address.key.begin(), address.key.end());
  text += static_cast<char>(address.interfaces);
  for (const SocketAddress& listener : address.listeners) text += Encode(listener);
  return text;
}

Result<PeerAddress> DecodePeerAddress(std::string_view text) {
  if (text.empty()) return Damaged();
  if (unsigned version = ByteAt(text, 0); version != kVersion) {
    return Error{ErrorCode::kProtocol, "it connects by version " + std::to_string(version) +
                                           ", this rank by version " + std::to_string(kVersion) +
                                           ": all ranks need the same librankrun"};
  }
  if (text.size() < kHead) return Damaged();
  PeerAddress address;
  std::memcpy(address.key.data(), text.data() + 1, kRankKeyBytes);
  address.interfaces = ByteAt(text, 1 + kRankKeyBytes);
  if (address.interfaces > kMaxInterfaces) return Damaged();
  text.remove_prefix(kHead);
  for (uint32_t i = 0; i < std::max(address.interfaces, uint32_t{1}); ++i) {
    auto listener = TakeListener(text);
    if (!listener) return std::move(listener).error();
    address.listeners.push_back(*listener);
  }
  if (!text.empty()) return Damaged();
  return address;
}

}  // namespace rankrun::comm::tcp
