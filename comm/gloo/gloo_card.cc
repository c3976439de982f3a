#include "comm/gloo/gloo_card.h"

#include <sys/random.h>

#include <cstring>

namespace rankrun::comm {

std::string Encode(const Card& card) {
  std::string text = card.secret;
  text.append(reinterpret_cast<const char*>(&card.interfaces), sizeof card.interfaces);
  for (const auto& [peer, address] : card.addresses) text.append(address.data(), address.size());
  return text;
}

Result<Card> DecodeCard(const std::string& text, int owner, int reader, int ranks) {
  constexpr std::size_t kHead = kSecretBytes + sizeof(uint32_t);
  const auto peers = static_cast<std::size_t>(ranks - 1);
  if (text.size() < kHead || (text.size() - kHead) % peers != 0) {
    return Error{ErrorCode::kProtocol, "the address of a rank in the store is damaged"};
  }
  Card card;
  card.secret = text.substr(0, kSecretBytes);
  std::memcpy(&card.interfaces, text.data() + kSecretBytes, sizeof card.interfaces);
  const std::size_t each = (text.size() - kHead) / peers;
  const auto index = static_cast<std::size_t>(reader < owner ? reader : reader - 1);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(kHead + index * each);
  card.addresses[reader] = {begin, begin + static_cast<std::ptrdiff_t>(each)};
  return card;
}

std::string NewSecret() {
  std::string secret(kSecretBytes, '\0');
  std::size_t have = 0;
  while (have < secret.size()) {
    const ssize_t got = getrandom(&secret[have], secret.size() - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return secret;
}

}  // namespace rankrun::comm
