#include "bench/rankrun_bench/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rankrun::bench {
namespace {

constexpr auto kSum = ReduceOp::kSum;

std::vector<DType> AllDTypes() {
  std::vector<DType> all;
  for (int number = 0; number < kDTypes; ++number) all.push_back(static_cast<DType>(number));
  return all;
}

template <typename T>
std::vector<T> ValuesOf(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::byte> Filled(DType dtype, size_t count, Source source) {
  std::vector<std::byte> buffer(count * SizeOf(dtype));
  Fill(buffer, Tile(dtype, source, kSum));
  return buffer;
}

TEST(PatternTest, FilledBufferHasNothingWrong) {
  for (DType dtype : AllDTypes()) {
    for (size_t count : {size_t{0}, size_t{1}, kPeriod, 3 * kPeriod + 5}) {
      auto buffer = Filled(dtype, count, {.from = 1});
      EXPECT_EQ(CountWrong(dtype, buffer, Tile(dtype, {.from = 1}, kSum)), 0) << NameOf(dtype);
    }
  }
}

TEST(PatternTest, OneSpoiltElementIsCountedOnce) {
  for (DType dtype : AllDTypes()) {
    auto buffer = Filled(dtype, 2500, {});
    for (size_t byte = 0; byte < SizeOf(dtype); ++byte) {
      buffer[2100 * SizeOf(dtype) + byte] ^= std::byte{0x55};
    }
    EXPECT_EQ(CountWrong(dtype, buffer, Tile(dtype, {}, kSum)), 1) << NameOf(dtype);
  }
}

TEST(PatternTest, OtherSendersReceiversAndRoundsDataIsWrong) {
  auto tile = Tile(DType::kFloat32, {.from = 1, .to = 2, .round = 3}, kSum);
  for (Source other : {Source{0, 2, 3}, Source{1, 1, 3}, Source{1, 2, 4}, Source{2, 1, 3}}) {
    auto buffer = Filled(DType::kFloat32, 4000, other);
    EXPECT_GT(CountWrong(DType::kFloat32, buffer, tile), 2000);
  }
}

TEST(PatternTest, PartsInTheWrongPlaceAreWrong) {
  constexpr size_t kCount = 1 << 16;
  auto buffer = Filled(DType::kInt32, kCount, {});
  for (size_t shift = 1; shift < kCount / 2; shift *= 2) {
    auto shifted = std::span(buffer).subspan(shift * sizeof(int32_t));
    EXPECT_GT(CountWrong(DType::kInt32, shifted, Tile(DType::kInt32, {}, kSum)),
              static_cast<int64_t>(kCount / 4))
        << shift;
  }
}

TEST(PatternTest, ReductionIsThatOfAllRanksTiles) {
  auto a = ValuesOf<int32_t>(Tile(DType::kInt32, {.from = 0}, kSum));
  auto b = ValuesOf<int32_t>(Tile(DType::kInt32, {.from = 1}, kSum));
  auto reduced = [](ReduceOp::Kind op) {
    return ValuesOf<int32_t>(ReducedTile(DType::kInt32, op, 2, {}));
  };
  for (size_t i = 0; i < kPeriod; ++i) {
    EXPECT_EQ(reduced(ReduceOp::kSum)[i], a[i] + b[i]);
    EXPECT_EQ(reduced(ReduceOp::kAvg)[i], (a[i] + b[i]) / 2);
    EXPECT_EQ(reduced(ReduceOp::kMin)[i], std::min(a[i], b[i]));
    EXPECT_EQ(reduced(ReduceOp::kMax)[i], std::max(a[i], b[i]));
    EXPECT_EQ(reduced(ReduceOp::kBitAnd)[i], a[i] & b[i]);
    EXPECT_EQ(reduced(ReduceOp::kBitOr)[i], a[i] | b[i]);
    EXPECT_EQ(reduced(ReduceOp::kBitXor)[i], a[i] ^ b[i]);
  }
}

TEST(PatternTest, ProductsWrapAroundInIntegersAndAreExactInFloats) {
  constexpr int kRanks = 40;
  std::vector<double> product(kPeriod, 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto factors =
        ValuesOf<double>(Tile(DType::kFloat64, {.from = rank}, ReduceOp::kProduct));
    for (size_t i = 0; i < kPeriod; ++i) product[i] *= factors[i];
  }
  auto real = ReducedTile(DType::kFloat64, ReduceOp::kProduct, kRanks, {});
  EXPECT_EQ(ValuesOf<double>(real), product);
  auto whole = ValuesOf<uint8_t>(ReducedTile(DType::kUInt8, ReduceOp::kProduct, kRanks, {}));
  for (size_t i = 0; i < kPeriod; ++i) {
    EXPECT_EQ(whole[i], static_cast<uint8_t>(static_cast<uint64_t>(product[i])));
  }
}

TEST(PatternTest, BooleanSumIsOr) {
  auto a = ValuesOf<uint8_t>(Tile(DType::kBool, {.from = 0}, kSum));
  auto b = ValuesOf<uint8_t>(Tile(DType::kBool, {.from = 1}, kSum));
  auto sum = ValuesOf<uint8_t>(ReducedTile(DType::kBool, kSum, 2, {}));
  for (size_t i = 0; i < kPeriod; ++i) EXPECT_EQ(sum[i], a[i] | b[i]);
}

TEST(PatternTest, ShortFloatsHaveTheBitsOfSmallNumbers) {
  const uint16_t half[] = {0x3c00, 0x4000, 0x4200, 0x4400};   // 1 to 4
  const uint16_t brain[] = {0x3f80, 0x4000, 0x4040, 0x4080};  // 1 to 4
  auto whole = ValuesOf<uint8_t>(Tile(DType::kUInt8, {}, kSum));
  auto halves = ValuesOf<uint16_t>(Tile(DType::kFloat16, {}, kSum));
  auto brains = ValuesOf<uint16_t>(Tile(DType::kBFloat16, {}, kSum));
  for (size_t i = 0; i < kPeriod; ++i) {
    EXPECT_EQ(halves[i], half[whole[i] - 1]);
    EXPECT_EQ(brains[i], brain[whole[i] - 1]);
  }
}

TEST(PatternTest, RoundingIsNotWrongButHalfAPercentIs) {
  auto values = ValuesOf<float>(Tile(DType::kFloat32, {}, kSum));
  values[3] = std::nextafter(values[3], 10.0F);
  values[4] *= 1.005F;
  EXPECT_EQ(CountWrong(DType::kFloat32, std::as_bytes(std::span(values)),
                       Tile(DType::kFloat32, {}, kSum)),
            1);
}

}  // namespace
}  // namespace rankrun::bench
