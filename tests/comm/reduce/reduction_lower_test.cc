#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "comm/reduce/reduction.h"
#include "comm/reduce/reduction_kernels.h"
#include "tests/comm/reduce/naive_reduction.h"

namespace rankrun::comm {
namespace {

using testing::ElementsAre;

std::string Refusal(DType dtype, ReduceOp op) {
  auto lowered = Lower(dtype, op, 2);
  return lowered ? "" : lowered.error().message;
}

TEST(LowerTest, DTypesHaveSizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kComplex128), 16U);
  EXPECT_STREQ(NameOf(DType::kComplex64), "complex64");
  for (int i = 0; i < kDTypes; ++i) EXPECT_GT(SizeOf(static_cast<DType>(i)), 0U) << i;
  EXPECT_EQ(SizeOf(static_cast<DType>(kDTypes)), 0U);
  EXPECT_STREQ(NameOf(static_cast<DType>(255)), "unknown");
}

TEST(LowerTest, PlainTypesStayAsTheyAre) {
  auto lowered = Lower(DType::kInt16, ReduceOp::kBitXor, 4);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->reduction.dtype, DType::kInt16);
  EXPECT_EQ(lowered->reduction.op, ReduceOp::kBitXor);
  EXPECT_EQ(lowered->reduction.divisor, 1);
  EXPECT_EQ(lowered->per_element, 1);
}

TEST(LowerTest, AverageIsASumDividedByTheWorldSize) {
  auto lowered = Lower(DType::kInt8, ReduceOp::kAvg, 300);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->reduction.op, ReduceOp::kSum);
  EXPECT_EQ(lowered->reduction.divisor, 300);
}

TEST(LowerTest, ComplexNumbersArePairsOfReals) {
  auto lowered = Lower(DType::kComplex128, ReduceOp::PremulSum(2), 4);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->reduction.dtype, DType::kFloat64);
  EXPECT_EQ(lowered->reduction.op, ReduceOp::kSum);
  EXPECT_EQ(lowered->reduction.divisor, 1);
  EXPECT_EQ(lowered->per_element, 2);
  EXPECT_EQ(Lower(DType::kComplex64, ReduceOp::kAvg, 4)->reduction.dtype, DType::kFloat32);
}

TEST(LowerTest, BooleansHaveOrAndAndXor) {
  auto truth = [](ReduceOp::Kind op) {
    auto lowered = Lower(DType::kBool, op, 2);
    EXPECT_TRUE(lowered);
    const bool a[] = {false, false, true, true};
    const bool b[] = {false, true, false, true};
    std::vector<int> result(4);
    bool output[4];
    const void* const inputs[] = {a, b};
    Reduce(lowered->reduction, output, inputs, 4);
    for (size_t i = 0; i < 4; ++i) result[i] = output[i] ? 1 : 0;
    return result;
  };
  for (auto op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kBitOr}) {
    EXPECT_THAT(truth(op), ElementsAre(0, 1, 1, 1)) << op;
  }
  for (auto op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kBitAnd}) {
    EXPECT_THAT(truth(op), ElementsAre(0, 0, 0, 1)) << op;
  }
  EXPECT_THAT(truth(ReduceOp::kBitXor), ElementsAre(0, 1, 1, 0));
}

TEST(LowerTest, RefusalsNameOperationAndDType) {
  EXPECT_EQ(Refusal(DType::kComplex64, ReduceOp::kMax),
            "does not support max on complex64 tensors: want sum, avg or premul_sum");
  EXPECT_EQ(Refusal(DType::kFloat16, ReduceOp::kBitAnd),
            "does not support bit_and on float16 tensors: want an integral dtype or bool");
  EXPECT_EQ(Refusal(DType::kBool, ReduceOp::kAvg),
            "does not support avg on bool tensors: want sum, product, min, max, bit_and, bit_or "
            "or bit_xor");
  EXPECT_EQ(Refusal(DType::kInt32, ReduceOp::PremulSum(2)),
            "does not support premul_sum on int32 tensors: want a floating-point or complex dtype");
  EXPECT_EQ(Refusal(DType::kFloat8E5M2, ReduceOp::kSum),
            "does not support sum on float8_e5m2 tensors: 8-bit floats can be moved, not reduced");
  EXPECT_EQ(Refusal(static_cast<DType>(99), ReduceOp::kSum), "no dtype has the number 99");
  EXPECT_EQ(Refusal(DType::kInt8, static_cast<ReduceOp::Kind>(9)), "no operation has the number 9");
}

TEST(LowerTest, EveryPairIsReducedOrRefused) {
  for (int dtype = 0; dtype < kDTypes; ++dtype) {
    for (int op = 0; op <= ReduceOp::kPremulSum; ++op) {
      auto lowered = Lower(static_cast<DType>(dtype), static_cast<ReduceOp::Kind>(op), 3);
      if (!lowered) continue;
      std::byte a[16] = {};
      const void* const inputs[] = {a, a};
      Reduce(lowered->reduction, a, inputs, static_cast<size_t>(lowered->per_element));
    }
  }
}

template <typename T>
std::vector<T> Reduced(DType dtype, ReduceOp::Kind op, std::vector<std::vector<T>> parts) {
  std::vector<const void*> inputs;
  for (auto& part : parts) inputs.push_back(part.data());
  std::vector<T> output(parts[0].size());
  Reduce({.dtype = dtype, .op = op}, output.data(), inputs, output.size());
  return output;
}

TEST(ReduceTest, NotANumberWinsWhereverItComesFrom) {
  float nan = std::nanf("");
  for (auto op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (size_t from = 0; from < 5; ++from) {
      std::vector<std::vector<float>> parts(5, std::vector<float>(20, 1));
      parts[from][7] = nan;
      auto result = Reduced(DType::kFloat32, op, parts);
      EXPECT_TRUE(std::isnan(result[7])) << from;
      EXPECT_EQ(result[8], 1);
    }
  }
}

TEST(ReduceTest, IntegersWrapAround) {
  EXPECT_THAT((Reduced<int8_t>(DType::kInt8, ReduceOp::kSum, {{127, -128}, {1, -1}})),
              ElementsAre(-128, 127));
  EXPECT_THAT((Reduced<uint16_t>(DType::kUInt16, ReduceOp::kProduct, {{65535}, {65535}})),
              ElementsAre(1));
  EXPECT_THAT((Reduced<int64_t>(DType::kInt64, ReduceOp::kSum, {{INT64_MAX}, {1}})),
              ElementsAre(INT64_MIN));
}

TEST(ReduceTest, SmallFloatsAreRoundedOnce) {
  // 2048 + 1 + 1 is 2050; rounded after each step it stays 2048.
  EXPECT_THAT((Reduced<uint16_t>(DType::kFloat16, ReduceOp::kSum, {{0x6800}, {0x3c00}, {0x3c00}})),
              ElementsAre(0x6801));
  // 256 + 1 + 1 is 258.
  EXPECT_THAT((Reduced<uint16_t>(DType::kBFloat16, ReduceOp::kSum, {{0x4380}, {0x3f80}, {0x3f80}})),
              ElementsAre(0x4381));
}

// a * 1 reads and writes each value once; covers all 65536 values of both
// types.
TEST(ScaleTest, EverySmallFloatComesBack) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const auto* input = reinterpret_cast<const std::byte*>(all.data());
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    auto format = dtype == DType::kFloat16 ? naive::kHalf : naive::kBrain;
    std::vector<std::vector<uint16_t>> results;
    for (const auto* kernels : {&baseline::kKernels, Avx2Kernels()}) {
      if (kernels == nullptr) continue;
      auto& output = results.emplace_back(all.size());
      kernels->scale(dtype, reinterpret_cast<std::byte*>(output.data()), input, 1, all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        bool nan = std::isnan(naive::ValueOf(format, all[i]));
        // A NaN keeps its sign and payload, and becomes a quiet one.
        int quiet = nan ? 1 << (format.fraction_bits - 1) : 0;
        ASSERT_EQ(output[i], all[i] | quiet) << NameOf(dtype) << " " << i;
      }
    }
  }
}

// Powers of two move every value into and out of the range of denormals.
TEST(ScaleTest, EverySmallFloatIsRoundedToTheNearest) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<uint16_t> output(all.size());
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    auto format = dtype == DType::kFloat16 ? naive::kHalf : naive::kBrain;
    for (const auto* kernels : {&baseline::kKernels, Avx2Kernels()}) {
      if (kernels == nullptr) continue;
      for (double factor : {0x1p-20, 0x1.008p-11, 0x1.004p0, 0x1.5555p-3, -0x1.8p4, 0x1p9}) {
        kernels->scale(dtype, reinterpret_cast<std::byte*>(output.data()),
                       reinterpret_cast<const std::byte*>(all.data()), factor, all.size());
        for (size_t i = 0; i < all.size(); ++i) {
          double value = naive::ValueOf(format, all[i]);
          if (std::isnan(value)) continue;
          float product = static_cast<float>(value) * static_cast<float>(factor);
          ASSERT_EQ(output[i], naive::BitsOf(format, product))
              << NameOf(dtype) << " " << i << " * " << factor;
        }
      }
    }
  }
}

TEST(ScaleTest, ComplexNumbersAreScaledInBothParts) {
  std::vector<std::complex<float>> values{{1, -2}, {3, 4}, {5, 6}};
  Scale(DType::kComplex64, values.data(), values.data(), 0.5, values.size());
  EXPECT_THAT(values, ElementsAre(std::complex<float>(0.5, -1), std::complex<float>(1.5, 2),
                                  std::complex<float>(2.5, 3)));
}

}  // namespace
}  // namespace rankrun::comm
