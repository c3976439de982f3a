#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rankrun {

enum class DType { kFloat32, kFloat64 };

// A view of dense memory that the caller owns and keeps until the call that
// it is given to has returned. `data` may be null only if `count` is 0.
struct Tensor {
  Tensor(std::span<float> values)
      : data(values.data()), dtype(DType::kFloat32), count(values.size()) {}
  Tensor(std::span<double> values)
      : data(values.data()), dtype(DType::kFloat64), count(values.size()) {}
  Tensor(std::vector<float>& values) : Tensor(std::span<float>(values)) {}
  Tensor(std::vector<double>& values) : Tensor(std::span<double>(values)) {}

  void* data;
  DType dtype;
  std::size_t count;  // elements, not bytes
};

}  // namespace rankrun
