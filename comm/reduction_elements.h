#pragma once

#include <cstddef>
#include <cstdint>

// Loops of several elements at once, with no test whether memory overlaps.
#if defined(__GNUC__) && !defined(__clang__)
#define RANKRUN_INDEPENDENT _Pragma("GCC ivdep")
#else
#define RANKRUN_INDEPENDENT
#endif

#ifndef RANKRUN_KERNELS
#define RANKRUN_KERNELS baseline
#endif

// Of each set of instructions its own copy: see reduction_kernels.cc.
namespace rankrun::comm::RANKRUN_KERNELS {

inline uint32_t BitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }
inline float FloatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// An element as it lies in memory (Bits) and as it is computed with (Value).
template <typename T>
struct Native {
  using Bits = T;
  using Value = T;
  static T Read(T bits) { return bits; }
  static T Write(T value) { return value; }
};

// IEEE 754 binary16. No step meets a float32 denormal that matters, so that a
// program which has them flushed to zero gets the same.
struct Half {
  using Bits = uint16_t;
  using Value = float;

  static float Read(uint16_t half) {
    const uint32_t bits = half;
    const uint32_t sign = (bits & 0x8000) << 16;
    const uint32_t rest = (bits & 0x7fff) << 13;
    const uint32_t normal = rest + (112U << 23);
    const uint32_t special = (rest + (224U << 23)) | (rest > (0x7c00U << 13) ? 1U << 22 : 0U);
    const uint32_t tiny = BitsOf(FloatOf(rest + (113U << 23)) - FloatOf(113U << 23));
    uint32_t value = rest >= (0x7c00U << 13) ? special : normal;
    value = rest < (0x0400U << 13) ? tiny : value;
    return FloatOf(value | sign);
  }

  // To nearest, ties to even.
  static uint16_t Write(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t rest = bits & 0x7fff'ffff;
    const uint32_t normal = (rest + 0xfff + ((rest >> 13) & 1) - (112U << 23)) >> 13;
    // The unit in the last place of 0.5 is that of a half's denormals.
    const uint32_t tiny = BitsOf(FloatOf(rest) + 0.5F) - BitsOf(0.5F);
    const uint32_t nan = 0x7e00 | ((rest >> 13) & 0x3ff);
    uint32_t half = rest < (113U << 23) ? tiny : normal;
    half = rest >= 0x477f'f000 ? 0x7c00 : half;  // from 65520 on, and infinity
    half = rest > 0x7f80'0000 ? nan : half;
    return static_cast<uint16_t>(half | sign);
  }
};

// The upper half of a float32.
struct Brain {
  using Bits = uint16_t;
  using Value = float;

  static float Read(uint16_t brain) { return FloatOf(uint32_t{brain} << 16); }

  static uint16_t Write(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t nan = (bits >> 16) | 0x40;
    return static_cast<uint16_t>((bits & 0x7fff'ffff) > 0x7f80'0000 ? nan : rounded);
  }
};

// Memory need not be aligned, and may be of another type to the program.
template <typename Element>
typename Element::Value Load(const std::byte* from, std::size_t index) {
  typename Element::Bits bits;
  __builtin_memcpy(&bits, from + index * sizeof bits, sizeof bits);
  return Element::Read(bits);
}

template <typename Element>
void Store(std::byte* to, std::size_t index, typename Element::Value value) {
  const typename Element::Bits bits = Element::Write(value);
  __builtin_memcpy(to + index * sizeof bits, &bits, sizeof bits);
}

}  // namespace rankrun::comm::RANKRUN_KERNELS
