#include "comm/nccl/types.h"

#include <cstdint>
#include <string>

#include "base/status/operation_names.h"
#include "comm/reduce/reduction.h"

namespace rankrun::comm::nccl {
namespace {

Error Unsupported(const std::string& what, const std::string& wanted) {
  return {ErrorCode::kInvalid, "NCCL " + what + ": want " + wanted};
}

}  // namespace

Result<ReducedType> TypeToReduce(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ReducedType{ncclFloat32};
    case DType::kFloat64:
      return ReducedType{ncclFloat64};
    case DType::kFloat16:
      return ReducedType{ncclFloat16};
    case DType::kBFloat16:
      return ReducedType{ncclBfloat16};
    case DType::kInt8:
      return ReducedType{ncclInt8};
    case DType::kInt32:
      return ReducedType{ncclInt32};
    case DType::kInt64:
      return ReducedType{ncclInt64};
    case DType::kUInt8:
      return ReducedType{ncclUint8};
    case DType::kUInt32:
      return ReducedType{ncclUint32};
    case DType::kUInt64:
      return ReducedType{ncclUint64};
    case DType::kComplex64:
      return ReducedType{ncclFloat32, 2};
    case DType::kComplex128:
      return ReducedType{ncclFloat64, 2};
    default:
      return Unsupported(std::string("does not reduce ") + rankrun::NameOf(dtype) + " tensors",
                         "integers of 8, 32 or 64 bits, or floating or complex numbers of 16 "
                         "bits or more");
  }
}

Result<ncclRedOp_t> OperatorFor(ReduceOp::Kind op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kAvg:
      return ncclAvg;
    case ReduceOp::kProduct:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    default:
      return Unsupported(std::string("has no operator ") + NameOfReduceOp(op),
                         "sum, avg, product, min, max or premul_sum");
  }
}

void WriteScalar(double factor, DType dtype, void* scalar) {
  if (dtype == DType::kComplex64) dtype = DType::kFloat32;
  if (dtype == DType::kComplex128) dtype = DType::kFloat64;
  constexpr double kOne = 1;
  constexpr float kSingle = 1;
  constexpr uint16_t kHalf = 0x3c00;
  constexpr uint16_t kBrain = 0x3f80;
  const void* one = &kOne;
  if (dtype == DType::kFloat32) one = &kSingle;
  if (dtype == DType::kFloat16) one = &kHalf;
  if (dtype == DType::kBFloat16) one = &kBrain;
  Scale(dtype, scalar, one, factor, 1);
}

}  // namespace rankrun::comm::nccl
