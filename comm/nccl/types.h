#pragma once

#include <nccl.h>

#include <cstddef>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

#include "base/result.h"

// Element types and operators of NCCL. Pure.
namespace rankrun::comm::nccl {

// Returns the type that NCCL reduces for elements of `dtype`; a complex number
// counts as two reals.
// Error: kInvalid, "NCCL does not reduce int16 tensors: want ...".
struct ReducedType {
  ncclDataType_t type;
  size_t per_element = 1;
};
Result<ReducedType> TypeToReduce(DType dtype);

// Returns the operator of NCCL; for kPremulSum there is none, because it has to be
// made for each factor.
// Error: kInvalid, "NCCL has no operator for a bitwise and: want ...".
Result<ncclRedOp_t> OperatorFor(ReduceOp::Kind op);

// Writes `factor` as an element of `dtype`, a floating or complex type, to `scalar`,
// which has 8 bytes. For a complex type it is a real.
void WriteScalar(double factor, DType dtype, void* scalar);

}  // namespace rankrun::comm::nccl
