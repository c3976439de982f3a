#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include <rankrun/export.h>

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

// The DType of an element of type T.
template <typename T>
struct DTypeOf;
template <DType kDType>
struct DTypeIs {
  static constexpr DType kValue = kDType;
};
template <>
struct DTypeOf<float> : DTypeIs<DType::kFloat32> {};
template <>
struct DTypeOf<double> : DTypeIs<DType::kFloat64> {};
template <>
struct DTypeOf<Float16> : DTypeIs<DType::kFloat16> {};
template <>
struct DTypeOf<BFloat16> : DTypeIs<DType::kBFloat16> {};
template <>
struct DTypeOf<int8_t> : DTypeIs<DType::kInt8> {};
template <>
struct DTypeOf<int16_t> : DTypeIs<DType::kInt16> {};
template <>
struct DTypeOf<int32_t> : DTypeIs<DType::kInt32> {};
template <>
struct DTypeOf<int64_t> : DTypeIs<DType::kInt64> {};
template <>
struct DTypeOf<uint8_t> : DTypeIs<DType::kUInt8> {};
template <>
struct DTypeOf<uint16_t> : DTypeIs<DType::kUInt16> {};
template <>
struct DTypeOf<uint32_t> : DTypeIs<DType::kUInt32> {};
template <>
struct DTypeOf<uint64_t> : DTypeIs<DType::kUInt64> {};
template <>
struct DTypeOf<bool> : DTypeIs<DType::kBool> {};
template <>
struct DTypeOf<std::complex<float>> : DTypeIs<DType::kComplex64> {};
template <>
struct DTypeOf<std::complex<double>> : DTypeIs<DType::kComplex128> {};

}  // namespace rankrun
