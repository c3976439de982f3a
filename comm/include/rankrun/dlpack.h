#pragma once

#include <memory>

#include <rankrun/export.h>
#include <rankrun/tensor.h>

struct DLManagedTensor;  // defined in <dlpack/dlpack.h>

namespace rankrun {

// Exchange of tensors with other frameworks without a copy, by DLPack's
// unversioned C structures.
// Source: github.com/dmlc/dlpack.

// Returns a view of the memory of `tensor`, which the caller still owns. The
// first dimension gives the rows. Throws DistError unless the tensor is dense
// in row-major order, has one of our dtypes, and is in CPU or CUDA memory; the
// text names the property and the accepted values.
RANKRUN_API Tensor FromDLPack(const DLManagedTensor& tensor);
// As FromDLPack for a `DLTensor*`. DLTensor is an unnamed struct, so it cannot
// be declared here.
RANKRUN_API Tensor FromDLTensor(const void* tensor);

// Returns `tensor` with shape {count}, or {count / row, row} if `row` is above
// 1. The receiver calls the deleter when done, from any thread; until then
// `owner` keeps the memory alive. Throws DistError if `row` does not divide
// `count`.
RANKRUN_API DLManagedTensor* ToDLPack(const Tensor& tensor, std::shared_ptr<void> owner);

}  // namespace rankrun
