#include "comm/training/buckets.h"

#include <gmock/gmock.h>

#include <string>

namespace rankrun::comm {
namespace {

using testing::ElementsAre;

ConstTensor Of(DType dtype, size_t count) { return {nullptr, dtype, count}; }

// Returns "float32: 2@0 1@10" for each bucket: parameters with their offsets.
std::vector<std::string> TextsOf(const std::vector<BucketLayout>& buckets) {
  std::vector<std::string> texts;
  for (const BucketLayout& bucket : buckets) {
    std::string text = std::string(NameOf(bucket.dtype)) + ":";
    size_t count = 0;
    for (const BucketPart& part : bucket.parts) {
      text += " " + std::to_string(part.parameter) + "@" + std::to_string(part.offset);
      count += part.count;
    }
    texts.push_back(text + (count == bucket.count ? "" : " with a wrong count"));
  }
  return texts;
}

TEST(BucketsTest, TheLastParameterComesFirst) {
  auto buckets = MakeBuckets(
      std::vector{Of(DType::kFloat32, 100), Of(DType::kFloat32, 10), Of(DType::kFloat32, 1)},
      {1 << 20, 25 << 20});
  EXPECT_THAT(TextsOf(buckets), ElementsAre("float32: 2@0 1@1 0@11"));
  EXPECT_EQ(buckets[0].bytes(), 444U);
}

TEST(BucketsTest, ABucketIsClosedWhenItHasItsSize) {
  std::vector<ConstTensor> parameters(6, Of(DType::kFloat32, 10));
  EXPECT_THAT(
      TextsOf(MakeBuckets(parameters, {40, 80})),
      ElementsAre("float32: 5@0", "float32: 4@0 3@10", "float32: 2@0 1@10", "float32: 0@0"));
  EXPECT_THAT(TextsOf(MakeBuckets(parameters, {41, 1000})),
              ElementsAre("float32: 5@0 4@10", "float32: 3@0 2@10 1@20 0@30"));
  EXPECT_THAT(TextsOf(MakeBuckets(parameters, {1, 1})).size(), 6);
}

TEST(BucketsTest, EachTypeHasItsOwnInTheOrderInWhichTheyAreComplete) {
  std::vector<ConstTensor> parameters{Of(DType::kFloat64, 10), Of(DType::kFloat32, 10),
                                      Of(DType::kFloat64, 10), Of(DType::kFloat32, 10),
                                      Of(DType::kFloat64, 10)};
  EXPECT_THAT(TextsOf(MakeBuckets(parameters, {1 << 20, 1 << 20})),
              ElementsAre("float32: 3@0 1@10", "float64: 4@0 2@10 0@20"));
  EXPECT_THAT(TextsOf(MakeBuckets(parameters, {160, 160})),
              ElementsAre("float64: 4@0 2@10", "float32: 3@0 1@10", "float64: 0@0"));
}

TEST(BucketsTest, EmptyParametersTakeNoRoom) {
  std::vector<ConstTensor> parameters{Of(DType::kFloat32, 0), Of(DType::kFloat32, 3),
                                      Of(DType::kFloat32, 0)};
  EXPECT_THAT(TextsOf(MakeBuckets(parameters, {12, 12})),
              ElementsAre("float32: 2@0 1@0", "float32: 0@0"));
}

}  // namespace
}  // namespace rankrun::comm
