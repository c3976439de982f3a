#include "tests/comm/reduce/naive_reduction.h"

#include <cstdlib>

namespace rankrun::comm::naive {
namespace {

bool IsNan(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kFloat32:
      return std::isnan(At<float>(at, 0));
    case DType::kFloat64:
      return std::isnan(At<double>(at, 0));
    case DType::kFloat16:
      return std::isnan(ValueOf(kHalf, At<uint16_t>(at, 0)));
    case DType::kBFloat16:
      return std::isnan(ValueOf(kBrain, At<uint16_t>(at, 0)));
    default:
      return false;
  }
}

}  // namespace

void NaiveReduce(const Reduction& reduction, std::byte* output,
                 const std::vector<const void*>& inputs, size_t count) {
  switch (reduction.dtype) {
    case DType::kFloat32:
      return NaiveReduceAs<float>(reduction, output, inputs, count);
    case DType::kFloat64:
      return NaiveReduceAs<double>(reduction, output, inputs, count);
    case DType::kFloat16:
      return NaiveReduceSmall(kHalf, reduction, output, inputs, count);
    case DType::kBFloat16:
      return NaiveReduceSmall(kBrain, reduction, output, inputs, count);
    case DType::kInt8:
      return NaiveReduceAs<int8_t>(reduction, output, inputs, count);
    case DType::kInt16:
      return NaiveReduceAs<int16_t>(reduction, output, inputs, count);
    case DType::kInt32:
      return NaiveReduceAs<int32_t>(reduction, output, inputs, count);
    case DType::kInt64:
      return NaiveReduceAs<int64_t>(reduction, output, inputs, count);
    case DType::kUInt8:
      return NaiveReduceAs<uint8_t>(reduction, output, inputs, count);
    case DType::kUInt16:
      return NaiveReduceAs<uint16_t>(reduction, output, inputs, count);
    case DType::kUInt32:
      return NaiveReduceAs<uint32_t>(reduction, output, inputs, count);
    case DType::kUInt64:
      return NaiveReduceAs<uint64_t>(reduction, output, inputs, count);
    default:
      std::abort();
  }
}

uint64_t Corner(DType dtype, int which) {
  static constexpr uint64_t kFloat32[] = {0,          0x80000000, 0x3f800000, 0xff800000,
                                          0x7fc00000, 1,          0x7f7fffff, 0x7f800000};
  static constexpr uint64_t kFloat64[] = {
      0, 1ULL << 63,         0x3ff0ULL << 48, 0xfff0ULL << 48, 0x7ff8ULL << 48,
      1, 0x7fefffffffffffff, 0x7ff0ULL << 48};
  static constexpr uint64_t kFloat16[] = {0, 0x8000, 0x3c00, 0xfc00, 0x7e00, 1, 0x7bff, 0x7c00};
  static constexpr uint64_t kBFloat16[] = {0, 0x8000, 0x3f80, 0xff80, 0x7fc0, 1, 0x7f7f, 0x7f80};
  auto bits = 8 * SizeOf(dtype);
  uint64_t top = 1ULL << (bits - 1);
  const uint64_t integers[] = {0, 1, ~0ULL, top, top - 1, top + 1, 2, ~1ULL};
  switch (dtype) {
    case DType::kFloat32:
      return kFloat32[which];
    case DType::kFloat64:
      return kFloat64[which];
    case DType::kFloat16:
      return kFloat16[which];
    case DType::kBFloat16:
      return kBFloat16[which];
    default:
      return integers[which];
  }
}

size_t FirstDifference(DType dtype, const std::byte* a, const std::byte* b, size_t count) {
  size_t size = SizeOf(dtype);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* x = a + i * size;
    const std::byte* y = b + i * size;
    if (std::memcmp(x, y, size) != 0 && !(IsNan(dtype, x) && IsNan(dtype, y))) return i;
  }
  return count;
}

}  // namespace rankrun::comm::naive
