#include "comm/reduce/reduction.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "comm/reduce/reduction_kernels.h"
#include "tests/comm/reduce/naive_reduction.h"

namespace rankrun::comm {
namespace {

using Bytes = std::vector<std::byte>;

constexpr ReduceOp::Kind kOps[] = {ReduceOp::kSum,   ReduceOp::kProduct, ReduceOp::kMin,
                                   ReduceOp::kMax,   ReduceOp::kBitAnd,  ReduceOp::kBitOr,
                                   ReduceOp::kBitXor};

struct Compilation {
  const char* name;
  const ReductionKernels* kernels;
};

std::vector<Compilation> Compilations() {
  std::vector<Compilation> all{{"baseline", &baseline::kKernels}};
  if (Avx2Kernels() != nullptr) all.push_back({"avx2", Avx2Kernels()});
  return all;
}

// Test case. Memory begins `shift` bytes after a multiple of 64. The output is
// input number `alias`, or separate memory.
struct Case {
  Reduction reduction;
  int inputs;
  size_t count;
  size_t shift;
  int alias;
};

class Memory {
 public:
  Memory(size_t bytes, size_t shift) : bytes_(bytes + 128 + shift) {
    auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    first_ = (64 - address % 64) % 64 + shift;
  }
  std::byte* data() { return bytes_.data() + first_; }

 private:
  Bytes bytes_;
  size_t first_;
};

// Returns random bits; every eighth element is one of the critical values.
void Fill(DType dtype, std::byte* to, size_t count, std::mt19937_64& dice) {
  size_t size = SizeOf(dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = dice();
    if (dice() % 8 == 0) bits = naive::Corner(dtype, static_cast<int>(dice() % 8));
    std::memcpy(to + i * size, &bits, size);
  }
}

std::string Text(const Compilation& compilation, const Case& c) {
  return std::string(compilation.name) + " " + NameOf(c.reduction.dtype) + " op " +
         std::to_string(c.reduction.op) + " divisor " + std::to_string(c.reduction.divisor) + ", " +
         std::to_string(c.inputs) + " x " + std::to_string(c.count) + ", output is " +
         std::to_string(c.alias);
}

void Check(const Compilation& compilation, const Case& c, std::mt19937_64& dice) {
  size_t bytes = c.count * SizeOf(c.reduction.dtype);
  std::vector<Memory> memory;
  std::vector<const void*> inputs;
  for (int i = 0; i < c.inputs; ++i) {
    Memory& input = memory.emplace_back(bytes, c.shift + static_cast<size_t>(i % 2));
    Fill(c.reduction.dtype, input.data(), c.count, dice);
  }
  for (Memory& input : memory) inputs.push_back(input.data());
  Bytes want(bytes + 1);
  naive::NaiveReduce(c.reduction, want.data(), inputs, c.count);

  Memory own(bytes + 1, c.shift);
  std::byte* output = c.alias < 0 ? own.data() : memory[static_cast<size_t>(c.alias)].data();
  std::byte behind = output[bytes];
  compilation.kernels->reduce(c.reduction, output, inputs.data(), inputs.size(), c.count);
  EXPECT_TRUE(output[bytes] == behind) << "wrote past the end: " << Text(compilation, c);
  size_t wrong = naive::FirstDifference(c.reduction.dtype, output, want.data(), c.count);
  ASSERT_EQ(wrong, c.count) << Text(compilation, c);
}

class ReductionTest : public testing::TestWithParam<DType> {
 protected:
  std::vector<ReduceOp::Kind> Ops() const {
    std::vector<ReduceOp::Kind> ops;
    for (ReduceOp::Kind op : kOps) {
      if (Lower(GetParam(), op, 1)) ops.push_back(op);
    }
    return ops;
  }
};

TEST_P(ReductionTest, EqualsTheNaiveOneForAllSmallSizes) {
  std::mt19937_64 dice(1);
  for (const Compilation& compilation : Compilations()) {
    for (ReduceOp::Kind op : Ops()) {
      for (int inputs = 2; inputs <= 9; ++inputs) {
        for (size_t count = 0; count <= 70; ++count) {
          int alias = static_cast<int>(dice() % 12) - 2;
          Check(compilation,
                {.reduction = {.dtype = GetParam(), .op = op},
                 .inputs = inputs,
                 .count = count,
                 .shift = dice() % 64,
                 .alias = alias < inputs ? alias : -1},
                dice);
        }
      }
    }
  }
}

TEST_P(ReductionTest, EqualsTheNaiveOneAroundTheEndsOfBlocks) {
  std::mt19937_64 dice(2);
  for (const Compilation& compilation : Compilations()) {
    for (ReduceOp::Kind op : Ops()) {
      for (int inputs : {2, 3, 5}) {
        for (size_t count : {511u, 512u, 1023u, 1024u, 1025u, 2048u, 2049u, 4099u}) {
          Check(compilation,
                {.reduction = {.dtype = GetParam(), .op = op},
                 .inputs = inputs,
                 .count = count,
                 .shift = count % 3,
                 .alias = static_cast<int>(count % 4) < inputs ? static_cast<int>(count % 4) : -1},
                dice);
        }
      }
    }
  }
}

TEST_P(ReductionTest, SumIsDividedAtTheEnd) {
  std::mt19937_64 dice(3);
  for (const Compilation& compilation : Compilations()) {
    for (int inputs = 1; inputs <= 9; ++inputs) {
      for (int divisor : {2, 3, 7, 128, 300, 65536}) {
        for (size_t count : {0u, 1u, 7u, 33u, 70u, 1030u}) {
          Check(compilation,
                {.reduction = {.dtype = GetParam(), .op = ReduceOp::kSum, .divisor = divisor},
                 .inputs = inputs,
                 .count = count,
                 .shift = dice() % 64,
                 .alias = static_cast<int>(count) % inputs},
                dice);
        }
      }
    }
  }
}

TEST_P(ReductionTest, OneInputIsCopiedWithAllItsBits) {
  std::mt19937_64 dice(4);
  Memory input(1000 * SizeOf(GetParam()), 3);
  Fill(GetParam(), input.data(), 1000, dice);
  Bytes output(1000 * SizeOf(GetParam()));
  const void* const inputs[] = {input.data()};
  Reduce({.dtype = GetParam(), .op = ReduceOp::kMax}, output.data(), inputs, 1000);
  EXPECT_EQ(std::memcmp(output.data(), input.data(), output.size()), 0);
}

std::string NameOfParam(const testing::TestParamInfo<DType>& info) { return NameOf(info.param); }

INSTANTIATE_TEST_SUITE_P(All, ReductionTest,
                         testing::Values(DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                         DType::kBFloat16, DType::kInt8, DType::kInt16,
                                         DType::kInt32, DType::kInt64, DType::kUInt8,
                                         DType::kUInt16, DType::kUInt32, DType::kUInt64),
                         NameOfParam);

}  // namespace
}  // namespace rankrun::comm
