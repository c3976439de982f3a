#pragma once

#include <cstddef>
#include <span>

#include <rankrun/dtype.h>
#include <rankrun/reduce_op.h>

#include "base/result.h"

namespace rankrun::comm {

// Reduction that a backend carries out. `dtype` is not complex, boolean or an
// 8-bit float; `op` is not kAvg or kPremulSum.
struct Reduction {
  DType dtype;
  ReduceOp::Kind op;
  int divisor = 1;  // kSum: divides the final sum, which implements kAvg
};

// Reduction for a user's operation. A complex number counts as `per_element` =
// 2 reals.
struct LoweredReduction {
  Reduction reduction;
  int per_element = 1;
};
// Returns the reduction for a user's operation on elements of `dtype`.
// Errors: kInvalid, for example "does not support max on complex64 tensors".
Result<LoweredReduction> Lower(DType dtype, const ReduceOp& op, int world_size);

// Computes output[i] = inputs[0][i] op inputs[1][i] op ..., in this order, then
// divides. There is at least one input; `output` may be one of them.
// Accumulates 16-bit floats in float32.
void Reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs,
            size_t count);

// Computes output[i] = input[i] * factor for floating types, as kPremulSum
// needs. `output` may be `input`.
void Scale(DType dtype, void* output, const void* input, double factor, size_t count);

}  // namespace rankrun::comm
