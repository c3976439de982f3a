#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
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

// Memory of elements in a row: std::vector, std::array, an array, std::span.
template <typename R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;
// A range that ends with its expression, and with it the memory.
template <typename R>
concept TemporaryRange =
    ElementRange<R> && !std::is_lvalue_reference_v<R> && !std::ranges::borrowed_range<R>;
// A range or an element that ends with its expression.
template <typename T>
concept Temporary = TemporaryRange<T> ||(!std::is_reference_v<T> && FindDType<T>().has_value());
template <typename R>
using ElementOf = std::remove_reference_t<std::ranges::range_reference_t<R>>;

// View of dense memory in row-major order. The caller owns the memory and keeps
// it until the work on it is complete. `data` may be null only if `count` is 0.
struct Tensor {
  Tensor(void* memory, DType type, size_t elements) : data(memory), dtype(type), count(elements) {}
  template <ElementRange R>
  requires(!TemporaryRange<R> && !std::is_const_v<ElementOf<R>>) Tensor(R&& values)
      : Tensor(std::ranges::data(values), DTypeOf<ElementOf<R>>::kValue,
               std::ranges::size(values)) {}
  // One element.
  template <typename T>
  requires(FindDType<T>().has_value()) Tensor(T& element) : Tensor(&element, *FindDType<T>(), 1) {}
  template <typename A>
  Tensor(std::vector<bool, A>&) : Tensor(nullptr, DType::kBool, 0) {
    static_assert(sizeof(A) == 0, "std::vector<bool> has bits: use std::vector<uint8_t>");
  }

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
  template <ElementRange R>
  ConstTensor(const R& values)
      : ConstTensor(std::ranges::data(values), DTypeOf<std::remove_const_t<ElementOf<R>>>::kValue,
                    std::ranges::size(values)) {}
  // One element.
  template <typename T>
  requires(FindDType<T>().has_value()) ConstTensor(const T& element)
      : ConstTensor(&element, *FindDType<T>(), 1) {}
  template <typename A>
  ConstTensor(const std::vector<bool, A>&) : ConstTensor(nullptr, DType::kBool, 0) {
    static_assert(sizeof(A) == 0, "std::vector<bool> has bits: use std::vector<uint8_t>");
  }

  const void* data;
  DType dtype;
  size_t count;
  size_t row = 1;
  Device device = {};
};

// Tensors of a call that has one for each rank: {a, b}, or a range of Tensor.
class TensorList {
 public:
  TensorList() = default;
  TensorList(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}
  template <ElementRange R>
  requires std::same_as<std::remove_const_t<ElementOf<R>>, Tensor> TensorList(const R& tensors)
      : tensors_(std::ranges::begin(tensors), std::ranges::end(tensors)) {}

  operator std::span<const Tensor>() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

// As TensorList for memory that is only read; also of a range of Tensor.
class ConstTensorList {
 public:
  ConstTensorList() = default;
  ConstTensorList(std::initializer_list<ConstTensor> tensors) : tensors_(tensors) {}
  template <ElementRange R>
  requires(std::same_as<std::remove_const_t<ElementOf<R>>, Tensor> ||
           std::same_as<std::remove_const_t<ElementOf<R>>, ConstTensor>)
      ConstTensorList(const R& tensors)
      : tensors_(std::ranges::begin(tensors), std::ranges::end(tensors)) {}

  operator std::span<const ConstTensor>() const { return tensors_; }

 private:
  std::vector<ConstTensor> tensors_;
};

// Numbers of rows, one for each rank: {3, 1}, or a range of any integers. A negative one is
// an error of the call.
class Splits {
 public:
  Splits() = default;
  template <std::integral I>
  Splits(std::initializer_list<I> rows) : rows_(rows.begin(), rows.end()) {}
  template <ElementRange R>
  requires std::integral<std::remove_const_t<ElementOf<R>>> Splits(const R& rows)
      : rows_(std::ranges::begin(rows), std::ranges::end(rows)) {}

  operator std::span<const size_t>() const { return rows_; }

 private:
  std::vector<size_t> rows_;
};

}  // namespace rankrun
