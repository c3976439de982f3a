#pragma once

#include <cstddef>
#include <cstdint>

// Vectorizes the next loop without a test for overlapping memory.
#if defined(__GNUC__) && !defined(__clang__)
#define RANKRUN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define RANKRUN_INDEPENDENT
#endif

#ifndef RANKRUN_KERNELS
#define RANKRUN_KERNELS baseline
#endif

// Each instruction set has its own copy of this namespace: see
// reduction_blocks.h.
namespace rankrun::comm::RANKRUN_KERNELS {

inline uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
inline float FloatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Element type in memory (Bits) and in computations (Value).
template <typename T>
struct Native {
  using Bits = T;
  using Value = T;
  static T Read(T bits) { return bits; }
  static T Write(T value) { return value; }
};

// IEEE 754 binary16. No step depends on a float32 denormal, so programs that
// flush denormals to zero get the same results.
struct Half {
  using Bits = uint16_t;
  using Value = float;

  static float Read(uint16_t half) {
    uint32_t bits = half;
    uint32_t sign = (bits & 0x8000) << 16;
    uint32_t rest = (bits & 0x7fff) << 13;
    uint32_t normal = rest + (112U << 23);
    uint32_t special = (rest + (224U << 23)) | (rest > (0x7c00U << 13) ? 1U << 22 : 0U);
    uint32_t tiny = BitsOf(FloatOf(rest + (113U << 23)) - FloatOf(113U << 23));
    uint32_t value = rest >= (0x7c00U << 13) ? special : normal;
    value = rest < (0x0400U << 13) ? tiny : value;
    return FloatOf(value | sign);
  }

  // Rounds to nearest, ties to even.
  static uint16_t Write(float value) {
    uint32_t bits = BitsOf(value);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t rest = bits & 0x7fff'ffff;
    uint32_t normal = (rest + 0xfff + ((rest >> 13) & 1) - (112U << 23)) >> 13;
    // One unit in the last place of 0.5 equals one unit of a half's denormals.
    uint32_t tiny = BitsOf(FloatOf(rest) + 0.5F) - BitsOf(0.5F);
    uint32_t nan = 0x7e00 | ((rest >> 13) & 0x3ff);
    uint32_t half = rest < (113U << 23) ? tiny : normal;
    half = rest >= 0x477f'f000 ? 0x7c00 : half;  // 65520 and above round to infinity
    half = rest > 0x7f80'0000 ? nan : half;
    return static_cast<uint16_t>(half | sign);
  }
};

// bfloat16: the upper half of a float32.
struct Brain {
  using Bits = uint16_t;
  using Value = float;

  static float Read(uint16_t brain) { return FloatOf(uint32_t{brain} << 16); }

  static uint16_t Write(float value) {
    uint32_t bits = BitsOf(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40;
    return static_cast<uint16_t>((bits & 0x7fff'ffff) > 0x7f80'0000 ? nan : rounded);
  }
};

// Loads one element. Memory may be unaligned, and may have another type in the
// program.
template <typename Element>
typename Element::Value Load(const std::byte* from, size_t index) {
  typename Element::Bits bits;
  __builtin_memcpy(&bits, from + index * sizeof bits, sizeof bits);
  return Element::Read(bits);
}

template <typename Element>
void Store(std::byte* to, size_t index, typename Element::Value value) {
  const typename Element::Bits bits = Element::Write(value);
  __builtin_memcpy(to + index * sizeof bits, &bits, sizeof bits);
}

}  // namespace rankrun::comm::RANKRUN_KERNELS
