#pragma once

#include <cstdint>

namespace rankrun {

// How elements of several ranks become one. Integers wrap around. If an element
// is NaN on any rank, so is the result of kMin and kMax.
// For booleans kSum, kMax and kBitOr are "or", kProduct, kMin and kBitAnd
// "and"; kAvg and kPremulSum are refused. Complex numbers have kSum, kAvg and
// kPremulSum only; the bitwise ones are for integers and booleans.
// Float16 and BFloat16 are added up in float32; shm rounds once, Gloo at each of
// the ranks that a sum passes on its way.
struct ReduceOp {
  // The numbers are those of torch.distributed, and part of the C ABI.
  enum Kind : uint8_t {
    kSum = 0,
    kAvg = 1,  // the sum divided by the world size; integers are cut off towards 0
    kProduct = 2,
    kMin = 3,
    kMax = 4,
    kBitAnd = 5,
    kBitOr = 6,
    kBitXor = 7,
    kPremulSum = 8,  // each rank's elements times its own `factor`, then the sum
  };

  constexpr ReduceOp(Kind which) : kind(which) {}
  // For floating point and complex types.
  static constexpr ReduceOp PremulSum(double factor) {
    ReduceOp op(kPremulSum);
    op.factor = factor;
    return op;
  }

  Kind kind;
  double factor = 1;  // of kPremulSum; ranks may differ
};

}  // namespace rankrun
