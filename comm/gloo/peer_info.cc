#include "comm/gloo/peer_info.h"

#include <sys/random.h>

#include <cstring>

namespace rankrun::comm::gloo {

std::string Encode(const PeerInfo& info) {
  std::string text = info.secret;
  text.append(reinterpret_cast<const char*>(&info.interfaces), sizeof info.interfaces);
  for (const auto& [peer, address] : info.addresses) text.append(address.data(), address.size());
  return text;
}

Result<PeerInfo> DecodePeerInfo(const std::string& text, int owner, int reader, int ranks) {
  constexpr size_t kHead = kSecretBytes + sizeof(uint32_t);
  auto peers = static_cast<size_t>(ranks - 1);
  if (text.size() < kHead || (text.size() - kHead) % peers != 0) {
    return Error{ErrorCode::kProtocol, "the address of a rank in the store is damaged"};
  }
  PeerInfo info;
  info.secret = text.substr(0, kSecretBytes);
  std::memcpy(&info.interfaces, text.data() + kSecretBytes, sizeof info.interfaces);
  size_t each = (text.size() - kHead) / peers;
  auto index = static_cast<size_t>(reader < owner ? reader : reader - 1);
  auto begin = text.begin() + static_cast<std::ptrdiff_t>(kHead + index * each);
  info.addresses[reader] = {begin, begin + static_cast<std::ptrdiff_t>(each)};
  return info;
}

std::string NewSecret() {
  std::string secret(kSecretBytes, '\0');
  size_t have = 0;
  while (have < secret.size()) {
    ssize_t got = getrandom(&secret[have], secret.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  return secret;
}

}  // namespace rankrun::comm::gloo
