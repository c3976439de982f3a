#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/reduce/reduction_elements.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#endif

namespace rankrun::comm::RANKRUN_KERNELS {

// Vector of eight elements, for types that the processor can convert but the
// compiler does not vectorize.
using Eight = float __attribute__((vector_size(32)));

template <typename Element>
constexpr bool kByEight = false;

template <typename Element>
Eight LoadEight(const std::byte* from, size_t index) {
  static_assert(sizeof(typename Element::Bits) == sizeof(float));
  Eight value;
  __builtin_memcpy(&value, from + index * sizeof(float), sizeof value);
  return value;
}

template <typename Element>
void StoreEight(std::byte* to, size_t index, Eight value) {
  static_assert(sizeof(typename Element::Bits) == sizeof(float));
  __builtin_memcpy(to + index * sizeof(float), &value, sizeof value);
}

#if defined(__AVX2__) && defined(__F16C__)
template <>
inline constexpr bool kByEight<Half> = true;
template <>
inline constexpr bool kByEight<Brain> = true;

template <>
inline Eight LoadEight<Half>(const std::byte* from, size_t index) {
  __m128i halves;
  __builtin_memcpy(&halves, from + index * sizeof(uint16_t), sizeof halves);
  return _mm256_cvtph_ps(halves);
}

template <>
inline void StoreEight<Half>(std::byte* to, size_t index, Eight value) {
  __m128i halves = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
  __builtin_memcpy(to + index * sizeof(uint16_t), &halves, sizeof halves);
}

template <>
inline Eight LoadEight<Brain>(const std::byte* from, size_t index) {
  __m128i brains;
  __builtin_memcpy(&brains, from + index * sizeof(uint16_t), sizeof brains);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(brains), 16));
}

// Rounds as Brain::Write.
template <>
inline void StoreEight<Brain>(std::byte* to, size_t index, Eight value) {
  __m256i bits = _mm256_castps_si256(value);
  __m256i upper = _mm256_srli_epi32(bits, 16);
  __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  __m256i up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, up), 16);
  __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  __m256i brains = _mm256_blendv_epi8(rounded, nan, is_nan);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(brains), _mm256_extracti128_si256(brains, 1));
  __builtin_memcpy(to + index * sizeof(uint16_t), &packed, sizeof packed);
}
#endif

}  // namespace rankrun::comm::RANKRUN_KERNELS
