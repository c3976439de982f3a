#include "comm/training/divide.h"

#include "base/check.h"
#include "comm/reduce/reduction.h"

namespace rankrun::comm {

void Divide(DType dtype, void* elements, size_t count, int divisor) {
  auto lowered = Lower(dtype, ReduceOp::kAvg, divisor);
  RANKRUN_CHECK(static_cast<bool>(lowered), "averages of this type are refused before");
  const void* input = elements;
  Reduce(lowered->reduction, elements, {&input, 1},
         count * static_cast<size_t>(lowered->per_element));
}

}  // namespace rankrun::comm
