#include "store/server/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::store {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

TimePoint At(int second) { return TimePoint(seconds(second)); }

TEST(StallsTest, AnIncompleteRequestStallsAfterTheTimeout) {
  Stalls stalls(seconds(10));
  EXPECT_EQ(stalls.NextDeadline(), std::nullopt);
  stalls.Progress(1, 5, At(100));
  EXPECT_EQ(stalls.NextDeadline(), At(110));
  EXPECT_THAT(stalls.TakeStalled(At(109)), IsEmpty());
  EXPECT_THAT(stalls.TakeStalled(At(110)), ElementsAre(1));
  EXPECT_THAT(stalls.TakeStalled(At(999)), IsEmpty());
}

TEST(StallsTest, AByteNowAndThenIsNoProgress) {
  Stalls stalls(seconds(10));
  for (int second = 0; second < 10; ++second) stalls.Progress(1, 1, At(second));
  EXPECT_THAT(stalls.TakeStalled(At(10)), ElementsAre(1));
}

TEST(StallsTest, EnoughBytesRestartTheTimeout) {
  Stalls stalls(seconds(10));
  stalls.Progress(1, 1, At(0));
  stalls.Progress(2, 1, At(1));
  stalls.Progress(1, Stalls::kProgressBytes - 1, At(5));
  stalls.Progress(1, 1, At(6));
  EXPECT_EQ(stalls.NextDeadline(), At(11));
  EXPECT_THAT(stalls.TakeStalled(At(15)), ElementsAre(2));
  EXPECT_THAT(stalls.TakeStalled(At(16)), ElementsAre(1));
}

TEST(StallsTest, ACompleteRequestIsForgotten) {
  Stalls stalls(seconds(10));
  stalls.Progress(1, 1, At(0));
  stalls.Progress(2, 1, At(0));
  stalls.Forget(1);
  stalls.Forget(7);  // never had an incomplete request
  EXPECT_THAT(stalls.TakeStalled(At(10)), ElementsAre(2));
  stalls.Progress(1, 1, At(20));
  EXPECT_EQ(stalls.NextDeadline(), At(30));
  stalls.Clear();
  EXPECT_EQ(stalls.NextDeadline(), std::nullopt);
  EXPECT_THAT(stalls.TakeStalled(At(99)), IsEmpty());
}

}  // namespace
}  // namespace rankrun::store
