#include "comm/gloo/reduce.h"

namespace rankrun::comm {
namespace {

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return (a < b || a != a) ? a : b;  // a != a: NaN; a NaN in b is chosen as "not less"
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return (a > b || a != a) ? a : b;
  }
};

template <typename T, typename Op>
void Apply(void* out, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<T*>(out);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (std::size_t i = 0; i < count; ++i) to[i] = Op()(left[i], right[i]);
}

template <typename T>
ReduceFunction FunctionOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return Apply<T, Sum>;
    case ReduceOp::kProduct:
      return Apply<T, Product>;
    case ReduceOp::kMin:
      return Apply<T, Min>;
    case ReduceOp::kMax:
      return Apply<T, Max>;
  }
  __builtin_unreachable();
}

template <typename T>
void DivideAll(void* data, std::size_t count, int divisor) {
  auto* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) values[i] /= static_cast<T>(divisor);
}

}  // namespace

ReduceFunction ReductionOf(DType dtype, ReduceOp op) {
  return dtype == DType::kFloat32 ? FunctionOf<float>(op) : FunctionOf<double>(op);
}

void Divide(const Tensor& tensor, int divisor) {
  if (tensor.dtype == DType::kFloat32) return DivideAll<float>(tensor.data, tensor.count, divisor);
  DivideAll<double>(tensor.data, tensor.count, divisor);
}

}  // namespace rankrun::comm
