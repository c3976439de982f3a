#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "comm/reduce/reduction.h"

// Reference reductions: one element after the other, with explicit arithmetic.
namespace rankrun::comm::naive {

// 16-bit float with `fraction` bits below the point of its significand.
struct SmallFormat {
  int exponent_bits;
  int fraction_bits;
};
constexpr SmallFormat kHalf{5, 10};
constexpr SmallFormat kBrain{8, 7};

inline double ValueOf(SmallFormat format, uint16_t bits) {
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  int top = (1 << format.exponent_bits) - 1;
  int exponent = (bits >> format.fraction_bits) & top;
  int fraction = bits & ((1 << format.fraction_bits) - 1);
  double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == top) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  int whole = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - format.fraction_bits);
}

// Rounds to nearest, ties to even, by counting units in the last place.
inline uint16_t BitsOf(SmallFormat format, double value) {
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  int infinity = ((1 << format.exponent_bits) - 1) << format.fraction_bits;
  int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1);
  double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<uint16_t>(sign | infinity);
  if (size == 0) return static_cast<uint16_t>(sign);
  int exponent = std::max(std::ilogb(size), 1 - bias);
  double units = std::nearbyint(std::ldexp(size, format.fraction_bits - exponent));
  // The addition carries into the next binade correctly.
  double bits = units + std::ldexp(exponent + bias - 1, format.fraction_bits);
  return static_cast<uint16_t>(sign | static_cast<int>(std::min<double>(bits, infinity)));
}

template <typename T>
T Combined(ReduceOp::Kind op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kSum) return a + b;
    if (op == ReduceOp::kProduct) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  } else {
    using Wide = unsigned __int128;
    auto x = static_cast<Wide>(a);
    auto y = static_cast<Wide>(b);
    if (op == ReduceOp::kSum) return static_cast<T>(x + y);
    if (op == ReduceOp::kProduct) return static_cast<T>(x * y);
    if (op == ReduceOp::kBitAnd) return static_cast<T>(x & y);
    if (op == ReduceOp::kBitOr) return static_cast<T>(x | y);
    if (op == ReduceOp::kBitXor) return static_cast<T>(x ^ y);
  }
  if (op == ReduceOp::kMin) return a < b ? a : b;
  return a > b ? a : b;
}

template <typename T>
T Divided(T value, int divisor) {
  if (divisor == 1) return value;
  if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(divisor);
  } else {
    return static_cast<T>(static_cast<__int128>(value) / divisor);
  }
}

template <typename T>
T At(const void* data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof value, sizeof value);
  return value;
}

template <typename T>
void NaiveReduceAs(const Reduction& reduction, std::byte* output,
                   const std::vector<const void*>& inputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T value = At<T>(inputs[0], i);
    for (size_t k = 1; k < inputs.size(); ++k) {
      value = Combined(reduction.op, value, At<T>(inputs[k], i));
    }
    value = Divided(value, reduction.divisor);
    std::memcpy(output + i * sizeof value, &value, sizeof value);
  }
}

inline void NaiveReduceSmall(SmallFormat format, const Reduction& reduction, std::byte* output,
                             const std::vector<const void*>& inputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<float>(ValueOf(format, At<uint16_t>(inputs[0], i)));
    for (size_t k = 1; k < inputs.size(); ++k) {
      value = Combined(reduction.op, value,
                       static_cast<float>(ValueOf(format, At<uint16_t>(inputs[k], i))));
    }
    uint16_t bits = BitsOf(format, Divided(value, reduction.divisor));
    std::memcpy(output + i * sizeof bits, &bits, sizeof bits);
  }
}

void NaiveReduce(const Reduction& reduction, std::byte* output,
                 const std::vector<const void*>& inputs, size_t count);

// Returns the bits of one of eight critical values: zeros, ones, infinities,
// NaN, the smallest and the largest.
uint64_t Corner(DType dtype, int which);

// Returns the index of the first element that differs, or `count`; all NaN are
// equal.
size_t FirstDifference(DType dtype, const std::byte* a, const std::byte* b, size_t count);

}  // namespace rankrun::comm::naive
