#pragma once

#include <cstdint>

#include "comm/reduce/reduction_eight.h"
#include "comm/reduce/reduction_elements.h"

namespace rankrun::comm::RANKRUN_KERNELS {

// Type in which integers are added and multiplied, so that they wrap around. It
// is unsigned, and not narrower than int, to which C++ would promote the
// operands.
template <typename T>
struct Wrapping {
  using Type = uint32_t;
};
template <>
struct Wrapping<uint64_t> {
  using Type = uint64_t;
};
template <>
struct Wrapping<int64_t> {
  using Type = uint64_t;
};
template <>
struct Wrapping<float> {
  using Type = float;
};
template <>
struct Wrapping<double> {
  using Type = double;
};
template <>
struct Wrapping<Eight> {
  using Type = Eight;
};
template <typename T>
using Wide = typename Wrapping<T>::Type;

struct Sum {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Product {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
  }
};
struct Min {
  template <typename T>
  static T Of(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;  // a != a: NaN; a NaN in b fails a < b
  }
};
struct Max {
  template <typename T>
  static T Of(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct BitAnd {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Returns the quotient by a positive divisor. Types narrower than int divide as
// int.
template <typename T>
T Quotient(T value, int divisor) {
  return static_cast<T>(value / divisor);
}
template <>
inline uint32_t Quotient(uint32_t value, int divisor) {
  return value / static_cast<uint32_t>(divisor);
}
template <>
inline uint64_t Quotient(uint64_t value, int divisor) {
  return value / static_cast<uint64_t>(divisor);
}
template <>
inline float Quotient(float value, int divisor) {
  return value / static_cast<float>(divisor);
}
template <>
inline double Quotient(double value, int divisor) {
  return value / static_cast<double>(divisor);
}

#ifdef __F16C__
template <>
inline Eight Quotient(Eight value, int divisor) {
  return value / static_cast<float>(divisor);
}
#endif

}  // namespace rankrun::comm::RANKRUN_KERNELS
