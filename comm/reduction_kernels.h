#pragma once

#include <cstddef>

#include "comm/reduction.h"

namespace rankrun::comm {

// One compilation of the loops for one set of instructions. All give the same
// bits, but for what a NaN carries besides being one.
struct ReductionKernels {
  // As Reduce, for at least two inputs or a divisor.
  void (*reduce)(const Reduction& reduction, std::byte* output, const void* const* inputs,
                 std::size_t input_count, std::size_t count);
  // As Scale.
  void (*scale)(DType dtype, std::byte* output, const std::byte* input, double factor,
                std::size_t count);
};

namespace baseline {  // for every processor that the compiler was told of
extern const ReductionKernels kKernels;
}
namespace avx2 {  // AVX2 and F16C; on x86-64 only
extern const ReductionKernels kKernels;
}

// Null if this processor has none.
const ReductionKernels* Avx2Kernels();

}  // namespace rankrun::comm
