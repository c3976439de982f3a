#include "comm/reduce/reduction_blocks.h"

namespace rankrun::comm::RANKRUN_KERNELS {
namespace {

template <typename T, typename Unsigned>
void ReduceAs(Kind op, const Data& data) {
  // Operations that do not depend on the sign are compiled once for both types.
  switch (op) {
    case Kind::kSum:
      return data.divisor == 1 ? ReduceAll<Native<Unsigned>, Sum>(data)
                               : ReduceAll<Native<T>, Sum>(data);
    case Kind::kProduct:
      return ReduceAll<Native<Unsigned>, Product>(data);
    case Kind::kMin:
      return ReduceAll<Native<T>, Min>(data);
    case Kind::kMax:
      return ReduceAll<Native<T>, Max>(data);
    case Kind::kBitAnd:
      return ReduceAll<Native<Unsigned>, BitAnd>(data);
    case Kind::kBitOr:
      return ReduceAll<Native<Unsigned>, BitOr>(data);
    case Kind::kBitXor:
      return ReduceAll<Native<Unsigned>, BitXor>(data);
    default:
      __builtin_trap();
  }
}

}  // namespace

void ReduceIntegers(DType dtype, ReduceOp::Kind op, const Data& data) {
  switch (dtype) {
    case DType::kInt8:
      return ReduceAs<int8_t, uint8_t>(op, data);
    case DType::kInt16:
      return ReduceAs<int16_t, uint16_t>(op, data);
    case DType::kInt32:
      return ReduceAs<int32_t, uint32_t>(op, data);
    case DType::kInt64:
      return ReduceAs<int64_t, uint64_t>(op, data);
    case DType::kUInt8:
      return ReduceAs<uint8_t, uint8_t>(op, data);
    case DType::kUInt16:
      return ReduceAs<uint16_t, uint16_t>(op, data);
    case DType::kUInt32:
      return ReduceAs<uint32_t, uint32_t>(op, data);
    case DType::kUInt64:
      return ReduceAs<uint64_t, uint64_t>(op, data);
    default:
      __builtin_trap();
  }
}

}  // namespace rankrun::comm::RANKRUN_KERNELS
