// Compiled once per set of instructions, with RANKRUN_KERNELS as the name of
// its own. Must call nothing that other files have too, inline functions of the
// standard library among it: the linker would keep one copy for all, perhaps
// that with instructions which the processor does not have.
#include "comm/reduction_kernels.h"

#include <cstdint>

#include "comm/reduction_eight.h"
#include "comm/reduction_elements.h"
#include "comm/reduction_operators.h"

namespace rankrun::comm::RANKRUN_KERNELS {
namespace {

using Kind = ReduceOp::Kind;

// As many as stay in the first-level cache between two passes.
constexpr std::size_t kBlock = 1024;

// The operands of one pass: left op right[0] op ... op right[kRights - 1].
template <typename Left, typename Right, typename Op, int kRights>
class Operands {
 public:
  Operands(const std::byte* left, const std::byte* const* right)
      : left_(left),
        first_(right[0]),
        second_(right[kRights > 1 ? 1 : 0]),
        third_(right[kRights > 2 ? 2 : 0]) {}

  auto At(std::size_t i) const {
    auto value = Op::Of(Load<Left>(left_, i), Load<Right>(first_, i));
    if constexpr (kRights > 1) value = Op::Of(value, Load<Right>(second_, i));
    if constexpr (kRights > 2) value = Op::Of(value, Load<Right>(third_, i));
    return value;
  }
  Eight EightAt(std::size_t i) const {
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

// The output may be an operand, which has no effect on later elements; the
// compiler cannot know.
template <typename To, typename Left, typename Right, typename Op, int kRights>
void CombineSome(std::byte* output, const std::byte* left, const std::byte* const* right,
                 std::size_t count) {
  const Operands<Left, Right, Op, kRights> operands(left, right);
  std::size_t i = 0;
  if constexpr (kByEight<Right>) {
    for (; i + 8 <= count; i += 8) StoreEight<To>(output, i, operands.EightAt(i));
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<To>(output, i, operands.At(i));
}

constexpr std::size_t kMostRights = 3;

template <typename To, typename Left, typename Right, typename Op>
void Combine(std::byte* output, const std::byte* left, const std::byte* const* right,
             std::size_t rights, std::size_t count) {
  if (rights == 1) return CombineSome<To, Left, Right, Op, 1>(output, left, right, count);
  if (rights == 2) return CombineSome<To, Left, Right, Op, 2>(output, left, right, count);
  CombineSome<To, Left, Right, Op, 3>(output, left, right, count);
}

template <typename To, typename From>
void DivideBy(int divisor, std::byte* output, const std::byte* input, std::size_t count) {
  std::size_t i = 0;
  if constexpr (kByEight<To>) {
    for (; i + 8 <= count; i += 8) {
      StoreEight<To>(output, i, Quotient(LoadEight<From>(input, i), divisor));
    }
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<To>(output, i, Quotient(Load<From>(input, i), divisor));
}

// Everything about one block, so that an input comes into the cache once: as
// many inputs at once as a pass takes, what they come to kept in between. Not
// in the output, which may be an input that is still to come.
template <typename Element, typename Op>
void ReduceBlock(int divisor, std::byte* output, const void* const* inputs, std::size_t input_count,
                 std::size_t first, std::size_t count) {
  using Value = typename Element::Value;
  using Plain = Native<Value>;
  alignas(64) std::byte sum[kBlock * sizeof(Value)];
  const std::size_t offset = first * sizeof(typename Element::Bits);
  output += offset;
  const auto* left = static_cast<const std::byte*>(inputs[0]) + offset;
  if (input_count == 1) return DivideBy<Element, Element>(divisor, output, left, count);
  for (std::size_t next = 1; next < input_count;) {
    const std::byte* right[kMostRights];
    std::size_t rights = 0;
    const bool begins = next == 1;
    while (rights < kMostRights && next < input_count) {
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

struct Data {
  int divisor;
  std::byte* output;
  const void* const* inputs;
  std::size_t input_count;
  std::size_t count;
};

template <typename Element, typename Op>
void ReduceAll(const Data& data) {
  for (std::size_t first = 0; first < data.count; first += kBlock) {
    const std::size_t left = data.count - first;
    ReduceBlock<Element, Op>(data.divisor, data.output, data.inputs, data.input_count, first,
                             left < kBlock ? left : kBlock);
  }
}

template <typename Element>
void ReduceFloats(Kind op, const Data& data) {
  switch (op) {
    case Kind::kSum:
      return ReduceAll<Element, Sum>(data);
    case Kind::kProduct:
      return ReduceAll<Element, Product>(data);
    case Kind::kMin:
      return ReduceAll<Element, Min>(data);
    case Kind::kMax:
      return ReduceAll<Element, Max>(data);
    default:
      __builtin_trap();
  }
}

template <typename T, typename Unsigned>
void ReduceIntegers(Kind op, const Data& data) {
  // What carries no sign is compiled once for both.
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

void ReduceAny(const Reduction& reduction, std::byte* output, const void* const* inputs,
               std::size_t input_count, std::size_t count) {
  const Data data{reduction.divisor, output, inputs, input_count, count};
  switch (reduction.dtype) {
    case DType::kFloat32:
      return ReduceFloats<Native<float>>(reduction.op, data);
    case DType::kFloat64:
      return ReduceFloats<Native<double>>(reduction.op, data);
    case DType::kFloat16:
      return ReduceFloats<Half>(reduction.op, data);
    case DType::kBFloat16:
      return ReduceFloats<Brain>(reduction.op, data);
    case DType::kInt8:
      return ReduceIntegers<int8_t, uint8_t>(reduction.op, data);
    case DType::kInt16:
      return ReduceIntegers<int16_t, uint16_t>(reduction.op, data);
    case DType::kInt32:
      return ReduceIntegers<int32_t, uint32_t>(reduction.op, data);
    case DType::kInt64:
      return ReduceIntegers<int64_t, uint64_t>(reduction.op, data);
    case DType::kUInt8:
      return ReduceIntegers<uint8_t, uint8_t>(reduction.op, data);
    case DType::kUInt16:
      return ReduceIntegers<uint16_t, uint16_t>(reduction.op, data);
    case DType::kUInt32:
      return ReduceIntegers<uint32_t, uint32_t>(reduction.op, data);
    case DType::kUInt64:
      return ReduceIntegers<uint64_t, uint64_t>(reduction.op, data);
    default:
      __builtin_trap();
  }
}

template <typename Element>
void ScaleAs(std::byte* output, const std::byte* input, double factor, std::size_t count) {
  const auto by = static_cast<typename Element::Value>(factor);
  std::size_t i = 0;
  if constexpr (kByEight<Element>) {
    for (; i + 8 <= count; i += 8)
      StoreEight<Element>(output, i, LoadEight<Element>(input, i) * by);
  }
  RANKRUN_INDEPENDENT
  for (; i < count; ++i) Store<Element>(output, i, Load<Element>(input, i) * by);
}

void ScaleAny(DType dtype, std::byte* output, const std::byte* input, double factor,
              std::size_t count) {
  switch (dtype) {
    case DType::kFloat32:
      return ScaleAs<Native<float>>(output, input, factor, count);
    case DType::kFloat64:
      return ScaleAs<Native<double>>(output, input, factor, count);
    case DType::kFloat16:
      return ScaleAs<Half>(output, input, factor, count);
    case DType::kBFloat16:
      return ScaleAs<Brain>(output, input, factor, count);
    case DType::kComplex64:
      return ScaleAs<Native<float>>(output, input, factor, 2 * count);
    case DType::kComplex128:
      return ScaleAs<Native<double>>(output, input, factor, 2 * count);
    default:
      __builtin_trap();
  }
}

}  // namespace

const ReductionKernels kKernels = {.reduce = ReduceAny, .scale = ScaleAny};

}  // namespace rankrun::comm::RANKRUN_KERNELS
