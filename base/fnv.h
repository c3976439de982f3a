#pragma once

#include <cstdint>
#include <string_view>

namespace rankrun {

// Hash FNV-1a of 64 bits, for checks and short names. Whoever knows it can make two texts with one
// hash.
// Source: http://www.isthe.com/chongo/tech/comp/fnv/
class Fnv {
 public:
  Fnv() = default;
  explicit Fnv(uint64_t seed) : hash_(kBasis ^ seed) {}

  void Add(unsigned char byte) { hash_ = (hash_ ^ byte) * kPrime; }
  void Add(std::string_view bytes) {
    for (char c : bytes) Add(static_cast<unsigned char>(c));
  }
  uint64_t hash() const { return hash_; }

 private:
  static constexpr uint64_t kBasis = 0xCBF29CE484222325;
  static constexpr uint64_t kPrime = 0x100000001B3;

  uint64_t hash_ = kBasis;
};

}  // namespace rankrun
