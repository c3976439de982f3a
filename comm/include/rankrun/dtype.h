#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <rankrun/export.h>

// g++ 12 has _Float16 on x86 only, though it defines the limits of the type everywhere.
#if defined(__FLT16_MANT_DIG__) && (defined(__clang__) || __GNUC__ >= 13 || defined(__SSE2__))
#define RANKRUN_HAS_FLOAT16
#endif

namespace rankrun {

// Element type of a tensor. The numbers are part of the C ABI.
enum class DType : uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,   // IEEE 754 binary16
  kBFloat16 = 3,  // the upper half of a float32
  kInt8 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kUInt8 = 8,
  kUInt16 = 9,
  kUInt32 = 10,
  kUInt64 = 11,
  kBool = 12,        // one byte, 0 or 1
  kComplex64 = 13,   // two float32: real, imaginary
  kComplex128 = 14,  // two float64
  kFloat8E4M3 = 15,  // moved, never reduced
  kFloat8E5M2 = 16,  // moved, never reduced
};
constexpr int kDTypes = 17;

// Size of one element in bytes.
RANKRUN_API size_t SizeOf(DType dtype);
// Name for messages: "float32", "bfloat16", "complex64".
RANKRUN_API const char* NameOf(DType dtype);

// Elements of the 16-bit types that C++20 does not have.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// The DType of an element of type T; no value for a type that is none. char is none, because it
// is text, and neither are the other types of characters.
template <typename T>
constexpr std::optional<DType> FindDType() {
  constexpr auto is = []<typename... Types>(std::type_identity<Types>...) {
    return (std::is_same_v<T, Types> || ...);
  };
  using std::type_identity;
  if constexpr (is(type_identity<float>())) return DType::kFloat32;
  if constexpr (is(type_identity<double>())) return DType::kFloat64;
  if constexpr (is(type_identity<Float16>())) return DType::kFloat16;
#ifdef RANKRUN_HAS_FLOAT16
  if constexpr (is(type_identity<_Float16>())) return DType::kFloat16;
#endif
  if constexpr (is(type_identity<BFloat16>())) return DType::kBFloat16;
  if constexpr (is(type_identity<bool>())) return DType::kBool;
  if constexpr (is(type_identity<std::byte>())) return DType::kUInt8;
  if constexpr (is(type_identity<std::complex<float>>())) return DType::kComplex64;
  if constexpr (is(type_identity<std::complex<double>>())) return DType::kComplex128;
  constexpr bool is_text =
      is(type_identity<char>(), type_identity<wchar_t>(), type_identity<char8_t>(),
         type_identity<char16_t>(), type_identity<char32_t>());
  constexpr bool is_integer = std::is_integral_v<T> && !std::is_const_v<T> && !is_text;
  if constexpr (is_integer && !is(type_identity<bool>())) {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DType::kInt8 : DType::kUInt8;
    if constexpr (sizeof(T) == 2) return is_signed ? DType::kInt16 : DType::kUInt16;
    if constexpr (sizeof(T) == 4) return is_signed ? DType::kInt32 : DType::kUInt32;
    if constexpr (sizeof(T) == 8) return is_signed ? DType::kInt64 : DType::kUInt64;
  }
  return std::nullopt;
}

// The DType of an element of type T. Programs may specialize it for types of their own.
template <typename T>
struct DTypeOf {
  static_assert(FindDType<T>().has_value(),
                "no element type of a tensor: use float, double, _Float16, rankrun::Float16, "
                "rankrun::BFloat16, an integer (signed char or std::byte instead of char), bool, "
                "or std::complex of float or double");
  static constexpr DType kValue = FindDType<T>().value_or(DType::kUInt8);
};

}  // namespace rankrun
