#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <vector>

#include <rankrun/tensor.h>

namespace rankrun {

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
