#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace rankrun::comm {

inline constexpr std::size_t kSecretBytes = 16;

// What a rank publishes for the others, so that they connect to it and know it.
struct Card {
  std::string secret;
  uint32_t interfaces = 0;
  std::map<int, std::vector<char>> addresses = {};  // by peer
};

std::string NewSecret();

std::string Encode(const Card& card);

// The card of `owner`, with the address for `reader` only. Error: kProtocol.
Result<Card> DecodeCard(const std::string& text, int owner, int reader, int ranks);

}  // namespace rankrun::comm
