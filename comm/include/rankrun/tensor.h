#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <rankrun/dtype.h>

namespace rankrun {

enum class DeviceType : uint8_t { kCpu = 1, kCuda = 2 };  // DLPack's numbers

struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

// View of dense memory in row-major order. The caller owns the memory and keeps
// it until the work on it is complete. `data` may be null only if `count` is 0.
struct Tensor {
  Tensor(void* memory, DType type, size_t elements) : data(memory), dtype(type), count(elements) {}
  template <typename T>
  requires(!std::is_const_v<T>) Tensor(std::span<T> values)
      : Tensor(values.data(), DTypeOf<T>::kValue, values.size()) {}
  template <typename T>
  Tensor(std::vector<T>& values) : Tensor(std::span<T>(values)) {}

  void* data;
  DType dtype;
  size_t count;    // in elements
  size_t row = 1;  // elements per row (entry of the first dimension), the unit of splits
  Device device = {};
};

// Read-only view of dense memory; otherwise as Tensor.
struct ConstTensor {
  ConstTensor(const void* memory, DType type, size_t elements)
      : data(memory), dtype(type), count(elements) {}
  ConstTensor(const Tensor& tensor)
      : data(tensor.data),
        dtype(tensor.dtype),
        count(tensor.count),
        row(tensor.row),
        device(tensor.device) {}
  template <typename T>
  ConstTensor(std::span<T> values)
      : ConstTensor(values.data(), DTypeOf<std::remove_const_t<T>>::kValue, values.size()) {}
  template <typename T>
  ConstTensor(const std::vector<T>& values) : ConstTensor(std::span<const T>(values)) {}

  const void* data;
  DType dtype;
  size_t count;
  size_t row = 1;
  Device device = {};
};

}  // namespace rankrun
