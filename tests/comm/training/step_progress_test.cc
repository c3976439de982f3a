#include "comm/training/step_progress.h"

#include <gmock/gmock.h>

namespace rankrun::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Four parameters in three buckets: 3; 2 and 1; 0.
std::vector<BucketLayout> ThreeBuckets() {
  std::vector<ConstTensor> parameters(4, ConstTensor(nullptr, DType::kFloat32, 10));
  return MakeBuckets(parameters, {40, 80});
}

// Returns the buckets that may be reduced now.
std::vector<size_t> AllOf(StepProgress& progress) {
  std::vector<size_t> buckets;
  while (auto bucket = progress.TakeBucket()) buckets.push_back(*bucket);
  return buckets;
}

TEST(StepProgressTest, ABucketIsTakenWhenAllItsGradientsAreReady) {
  StepProgress progress(ThreeBuckets());
  EXPECT_THAT(AllOf(progress), IsEmpty());
  progress.SetReady(3);
  EXPECT_THAT(AllOf(progress), ElementsAre(0));
  progress.SetReady(2);
  EXPECT_THAT(AllOf(progress), IsEmpty());
  progress.SetReady(1);
  EXPECT_THAT(AllOf(progress), ElementsAre(1));
  progress.SetReady(0);
  EXPECT_THAT(AllOf(progress), ElementsAre(2));
  EXPECT_THAT(AllOf(progress), IsEmpty());
}

TEST(StepProgressTest, TheOrderOfBucketsIsFixed) {
  StepProgress progress(ThreeBuckets());
  for (size_t parameter = 0; parameter < 3; ++parameter) {
    progress.SetReady(parameter);
    EXPECT_THAT(AllOf(progress), IsEmpty());
  }
  progress.SetReady(3);
  EXPECT_THAT(AllOf(progress), ElementsAre(0, 1, 2));
}

TEST(StepProgressTest, EachGradientIsReadyOnceInAStep) {
  StepProgress progress(ThreeBuckets());
  EXPECT_TRUE(progress.SetReady(2));
  EXPECT_FALSE(progress.SetReady(2));
  EXPECT_THAT(progress.Missing(), ElementsAre(0, 1, 3));
  progress.Begin();
  EXPECT_THAT(progress.Missing(), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(progress.SetReady(2));
}

}  // namespace
}  // namespace rankrun::comm
