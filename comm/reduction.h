#pragma once

#include <cstddef>
#include <span>

#include <rankrun/dtype.h>
#include <rankrun/reduce_op.h>

#include "base/result.h"

namespace rankrun::comm {

// A reduction as backends carry it out: `dtype` is neither complex nor boolean
// nor an 8-bit float, `op` none of kAvg and kPremulSum.
struct Reduction {
  DType dtype;
  ReduceOp::Kind op;
  int divisor = 1;  // of kSum: what the sum is divided by at the very end, for kAvg
};

// What a backend does for a user's operation on elements of `dtype`: a complex
// number counts as `per_element` = 2 reals.
struct LoweredReduction {
  Reduction reduction;
  int per_element = 1;
};
// Errors: kInvalid, "does not support max on complex64 tensors" and the like.
Result<LoweredReduction> Lower(DType dtype, const ReduceOp& op, int world_size);

// output[i] = inputs[0][i] op inputs[1][i] op ..., in this order; then divides.
// `output` may be one of the inputs; there is at least one. Accumulates 16-bit
// floats in float32.
void Reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs,
            std::size_t count);

// output[i] = input[i] * factor, for floating types (for kPremulSum). `output`
// may be `input`.
void Scale(DType dtype, void* output, const void* input, double factor, std::size_t count);

}  // namespace rankrun::comm
