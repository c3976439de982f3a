#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rankrun::store::engine {

using SipKey = std::array<uint64_t, 2>;

// SipHash (Aumasson and Bernstein, 2012) with kRounds per block of 8 bytes and
// kLastRounds at the end. Without the key nobody can find keys that share a
// bucket. SipHash-1-3 is the usual choice for hash tables.
template <int kRounds = 1, int kLastRounds = 3>
uint64_t SipHash(const SipKey& key, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t v0 = key[0] ^ 0x736f6d6570736575, v1 = key[1] ^ 0x646f72616e646f6d,
           v2 = key[0] ^ 0x6c7967656e657261, v3 = key[1] ^ 0x7465646279746573;
  auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32) + v3;
      v2 += v1;
      v3 = std::rotl(v3, 21) ^ v0;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  auto add = [&](uint64_t block) {
    v3 ^= block;
    rounds(kRounds);
    v0 ^= block;
  };
  uint64_t block = 0;
  uint64_t last = uint64_t{text.size()} << 56;
  for (; text.size() >= sizeof block; text.remove_prefix(sizeof block)) {
    std::memcpy(&block, text.data(), sizeof block);
    add(block);
  }
  block = 0;
  std::memcpy(&block, text.data(), text.size());
  add(last | block);
  v2 ^= 0xFF;
  rounds(kLastRounds);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace rankrun::store::engine
