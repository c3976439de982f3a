#pragma once

#include <memory>

#include <rankrun/export.h>
#include <rankrun/tensor.h>

struct DLManagedTensor;  // of <dlpack/dlpack.h>, which this header does not need

namespace rankrun {

// Tensors of other frameworks and for them, without a copy, by DLPack's C
// structures (github.com/dmlc/dlpack; those without a version inside).

// A view of its memory; `tensor` stays the owner and the caller's. The first
// dimension gives the rows. Throws DistError, which says what it is and what
// would do, unless it is dense in row-major order, of one of our dtypes, and in
// memory of a CPU or of a CUDA device.
RANKRUN_API Tensor FromDLPack(const DLManagedTensor& tensor);
// The same for a `DLTensor*` (whose type has no name to be declared by).
RANKRUN_API Tensor FromDLTensor(const void* tensor);

// `tensor` for others, with `shape` {count}, or {count / row, row} if it has
// rows of more than one element. Whoever takes it calls its deleter when done,
// from any thread; `owner` keeps the memory until then. Throws DistError if
// `row` is no divisor of `count`.
RANKRUN_API DLManagedTensor* ToDLPack(const Tensor& tensor, std::shared_ptr<void> owner);

}  // namespace rankrun
