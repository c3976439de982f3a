#include "comm/reduce/reduction_blocks.h"

namespace rankrun::comm::RANKRUN_KERNELS {
namespace {

template <typename Element>
void ReduceAs(Kind op, const Data& data) {
  switch (op) {
    case Kind::kSum:
      return ReduceAll<Element, Sum>(data);
    case Kind::kProduct:
      return ReduceAll<Element, Product>(data);
    case Kind::kMin:
      return ReduceAll<Element, Min>(data);
    case Kind::kMax:
      return ReduceAll<Element, Max>(data);
    default:
      __builtin_trap();
  }
}

template <typename Element>
void ScaleAs(std::byte* output, const std::byte* input, double factor, size_t count) {
  auto by = static_cast<typename Element::Value>(factor);
  size_t i = 0;
  if constexpr (kByEight<Element>) {
    for (; i + 8 <= count; i += 8)
      StoreEight<Element>(output, i, LoadEight<Element>(input, i) * by);
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<Element>(output, i, Load<Element>(input, i) * by);
}

}  // namespace

void ReduceFloats(DType dtype, ReduceOp::Kind op, const Data& data) {
  switch (dtype) {
    case DType::kFloat32:
      return ReduceAs<Native<float>>(op, data);
    case DType::kFloat64:
      return ReduceAs<Native<double>>(op, data);
    case DType::kFloat16:
      return ReduceAs<Half>(op, data);
    case DType::kBFloat16:
      return ReduceAs<Brain>(op, data);
    default:
      __builtin_trap();
  }
}

void ScaleFloats(DType dtype, std::byte* output, const std::byte* input, double factor,
                 size_t count) {
  switch (dtype) {
    case DType::kFloat32:
      return ScaleAs<Native<float>>(output, input, factor, count);
    case DType::kFloat64:
      return ScaleAs<Native<double>>(output, input, factor, count);
    case DType::kFloat16:
      return ScaleAs<Half>(output, input, factor, count);
    case DType::kBFloat16:
      return ScaleAs<Brain>(output, input, factor, count);
    case DType::kComplex64:
      return ScaleAs<Native<float>>(output, input, factor, 2 * count);
    case DType::kComplex128:
      return ScaleAs<Native<double>>(output, input, factor, 2 * count);
    default:
      __builtin_trap();
  }
}

}  // namespace rankrun::comm::RANKRUN_KERNELS
