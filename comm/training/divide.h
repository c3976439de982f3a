#pragma once

#include <cstddef>

#include <rankrun/dtype.h>

namespace rankrun::comm {

// Divides elements in place as kAvg divides sums. `dtype` is one that kAvg supports.
void Divide(DType dtype, void* elements, size_t count, int divisor);

}  // namespace rankrun::comm
