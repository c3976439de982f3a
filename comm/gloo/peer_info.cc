#include "comm/gloo/peer_info.h"

#include <cstring>
#include <span>

#include "base/check.h"
#include "base/random_bytes.h"

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
  RANKRUN_CHECK(FillRandom(std::as_writable_bytes(std::span(secret))), "random bytes");
  return secret;
}

}  // namespace rankrun::comm::gloo
