#include "comm/reduce/reduction_kernels.h"

#include "comm/reduce/reduction_blocks.h"

namespace rankrun::comm::RANKRUN_KERNELS {
namespace {

void Reduce(const Reduction& reduction, std::byte* output, const void* const* inputs,
            size_t input_count, size_t count) {
  Data data{reduction.divisor, output, inputs, input_count, count};
  switch (reduction.dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBFloat16:
      return ReduceFloats(reduction.dtype, reduction.op, data);
    default:
      return ReduceIntegers(reduction.dtype, reduction.op, data);
  }
}

}  // namespace

const ReductionKernels kKernels = {.reduce = Reduce, .scale = ScaleFloats};

}  // namespace rankrun::comm::RANKRUN_KERNELS
