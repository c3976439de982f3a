#pragma once

#include <cstdint>

namespace rankrun {

// Operation that combines the elements of several ranks into one.
// - Integers wrap around. kMin and kMax are NaN if any rank's element is NaN (on GPU
//   memory, where NCCL computes, the NaN may be lost).
// - Booleans: kSum, kMax and kBitOr are "or"; kProduct, kMin and kBitAnd are
//   "and"; kAvg and kPremulSum are errors.
// - Complex numbers: kSum, kAvg and kPremulSum only.
// - Bitwise operations: integers and booleans only.
// - Sums of Float16 and BFloat16 are computed in float32. shm rounds once; the
//   other backends round at each rank that a partial sum passes.
struct ReduceOp {
  // The numbers are those of torch.distributed and part of the C ABI.
  enum Kind : uint8_t {
    kSum = 0,
    kAvg = 1,  // sum divided by the world size; integers are truncated towards 0
    kProduct = 2,
    kMin = 3,
    kMax = 4,
    kBitAnd = 5,
    kBitOr = 6,
    kBitXor = 7,
    kPremulSum = 8,  // sum of each rank's elements times its own `factor`
  };

  constexpr ReduceOp(Kind which) : kind(which) {}
  // Returns a kPremulSum with `factor`, for floating point and complex types.
  static constexpr ReduceOp PremulSum(double factor) {
    ReduceOp op(kPremulSum);
    op.factor = factor;
    return op;
  }

  Kind kind;
  double factor = 1;  // of kPremulSum; may differ between ranks
};

}  // namespace rankrun
