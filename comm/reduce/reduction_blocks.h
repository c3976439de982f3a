#pragma once

// Compiled once per instruction set, each time with its own RANKRUN_KERNELS.
// The files that include this one must not call inline functions that other
// files use, for example of the standard library. The linker keeps one copy of
// such a function, which may contain instructions that the processor does not
// have.

#include <cstddef>
#include <cstdint>

#include "comm/reduce/reduction.h"
#include "comm/reduce/reduction_eight.h"
#include "comm/reduce/reduction_elements.h"
#include "comm/reduce/reduction_operators.h"

namespace rankrun::comm::RANKRUN_KERNELS {

struct Data {
  int divisor;
  std::byte* output;
  const void* const* inputs;
  size_t input_count;
  size_t count;
};

// One unit for each: together they take too long to compile.
void ReduceFloats(DType dtype, ReduceOp::Kind op, const Data& data);
void ReduceIntegers(DType dtype, ReduceOp::Kind op, const Data& data);
void ScaleFloats(DType dtype, std::byte* output, const std::byte* input, double factor,
                 size_t count);

// Elements per block, so that a block stays in the first-level cache between
// two passes.
inline constexpr size_t kBlock = 1024;
// Inputs per pass.
inline constexpr size_t kMaxRights = 3;

namespace {

using Kind = ReduceOp::Kind;

// Operands of one pass: left op right[0] op ... op right[kRights - 1].
template <typename Left, typename Right, typename Op, int kRights>
class Operands {
 public:
  Operands(const std::byte* left, const std::byte* const* right)
      : left_(left),
        first_(right[0]),
        second_(right[kRights > 1 ? 1 : 0]),
        third_(right[kRights > 2 ? 2 : 0]) {}

  auto At(size_t i) const {
    auto value = Op::Of(Load<Left>(left_, i), Load<Right>(first_, i));
    if constexpr (kRights > 1) value = Op::Of(value, Load<Right>(second_, i));
    if constexpr (kRights > 2) value = Op::Of(value, Load<Right>(third_, i));
    return value;
  }
  Eight EightAt(size_t i) const {
    Eight value = Op::Of(LoadEight<Left>(left_, i), LoadEight<Right>(first_, i));
    if constexpr (kRights > 1) value = Op::Of(value, LoadEight<Right>(second_, i));
    if constexpr (kRights > 2) value = Op::Of(value, LoadEight<Right>(third_, i));
    return value;
  }

 private:
  const std::byte* left_;
  const std::byte* first_;
  const std::byte* second_;
  const std::byte* third_;
};

// The output may be one of the operands. This has no effect on later elements,
// but the compiler cannot know that.
template <typename To, typename Left, typename Right, typename Op, int kRights>
void CombineSome(std::byte* output, const std::byte* left, const std::byte* const* right,
                 size_t count) {
  Operands<Left, Right, Op, kRights> operands(left, right);
  size_t i = 0;
  if constexpr (kByEight<Right>) {
    for (; i + 8 <= count; i += 8) StoreEight<To>(output, i, operands.EightAt(i));
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<To>(output, i, operands.At(i));
}

template <typename To, typename Left, typename Right, typename Op>
void Combine(std::byte* output, const std::byte* left, const std::byte* const* right, size_t rights,
             size_t count) {
  if (rights == 1) return CombineSome<To, Left, Right, Op, 1>(output, left, right, count);
  if (rights == 2) return CombineSome<To, Left, Right, Op, 2>(output, left, right, count);
  CombineSome<To, Left, Right, Op, 3>(output, left, right, count);
}

template <typename To, typename From>
void DivideBy(int divisor, std::byte* output, const std::byte* input, size_t count) {
  size_t i = 0;
  if constexpr (kByEight<To>) {
    for (; i + 8 <= count; i += 8) {
      StoreEight<To>(output, i, Quotient(LoadEight<From>(input, i), divisor));
    }
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<To>(output, i, Quotient(Load<From>(input, i), divisor));
}

// Reduces one block completely, so that each input is loaded into the cache
// once. Each pass takes up to kMaxRights inputs. Partial results are kept in
// `sum`, because the output may be an input of a later pass.
template <typename Element, typename Op>
void ReduceBlock(int divisor, std::byte* output, const void* const* inputs, size_t input_count,
                 size_t first, size_t count) {
  using Value = typename Element::Value;
  using Plain = Native<Value>;
  alignas(64) std::byte sum[kBlock * sizeof(Value)];
  size_t offset = first * sizeof(typename Element::Bits);
  output += offset;
  const auto* left = static_cast<const std::byte*>(inputs[0]) + offset;
  if (input_count == 1) return DivideBy<Element, Element>(divisor, output, left, count);
  for (size_t next = 1; next < input_count;) {
    const std::byte* right[kMaxRights];
    size_t rights = 0;
    bool begins = next == 1;
    while (rights < kMaxRights && next < input_count) {
      right[rights++] = static_cast<const std::byte*>(inputs[next++]) + offset;
    }
    if (next == input_count && divisor == 1) {
      return begins ? Combine<Element, Element, Element, Op>(output, left, right, rights, count)
                    : Combine<Element, Plain, Element, Op>(output, sum, right, rights, count);
    }
    if (begins) {
      Combine<Plain, Element, Element, Op>(sum, left, right, rights, count);
    } else {
      Combine<Plain, Plain, Element, Op>(sum, sum, right, rights, count);
    }
  }
  DivideBy<Element, Plain>(divisor, output, sum, count);
}

template <typename Element, typename Op>
void ReduceAll(const Data& data) {
  for (size_t first = 0; first < data.count; first += kBlock) {
    size_t left = data.count - first;
    ReduceBlock<Element, Op>(data.divisor, data.output, data.inputs, data.input_count, first,
                             left < kBlock ? left : kBlock);
  }
}

}  // namespace
}  // namespace rankrun::comm::RANKRUN_KERNELS
