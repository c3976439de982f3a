#pragma once

#include <cstddef>

#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

namespace rankrun::comm {

// out[i] = a[i] op b[i] for `count` elements; `out` may be `a` or `b`.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// kAvg reduces by sum; the division is the caller's. If one operand of kMin or
// kMax is NaN the result is NaN, so that no order of ranks can hide one.
ReduceFunction ReductionOf(DType dtype, ReduceOp op);

// Divides each element by `divisor`.
void Divide(const Tensor& tensor, int divisor);

}  // namespace rankrun::comm
