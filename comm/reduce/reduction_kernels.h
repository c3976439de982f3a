#pragma once

#include <cstddef>

#include "comm/reduce/reduction.h"

namespace rankrun::comm {

// Reduction loops compiled for one instruction set. All sets give the same
// bits, except for the payload of a NaN.
struct ReductionKernels {
  // As Reduce, for at least two inputs or a divisor.
  void (*reduce)(const Reduction& reduction, std::byte* output, const void* const* inputs,
                 size_t input_count, size_t count);
  // As Scale.
  void (*scale)(DType dtype, std::byte* output, const std::byte* input, double factor,
                size_t count);
};

namespace baseline {  // for every processor of the target architecture
extern const ReductionKernels kKernels;
}
namespace avx2 {  // AVX2 and F16C; on x86-64 only
extern const ReductionKernels kKernels;
}

// Returns null if this processor does not support AVX2 and F16C.
const ReductionKernels* Avx2Kernels();

}  // namespace rankrun::comm
