#include "agent/metrics/progress.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

TimePoint At(int second) { return TimePoint(seconds(second)); }

TEST(ProgressTest, WithoutStepsOnlyTheDowntimeIsKnown) {
  Progress progress(At(0));
  progress.AttemptStarted(At(0));
  progress.AttemptFailed(At(10));
  progress.AttemptFailed(At(12));  // a consequence
  progress.AttemptStarted(At(15));
  EXPECT_EQ(progress.lost().downtime, seconds(5));
  EXPECT_EQ(progress.lost().unfinished_step, seconds(0));
  EXPECT_EQ(progress.lost().start, seconds(10));
  EXPECT_EQ(progress.productive(), seconds(0));
  EXPECT_FALSE(progress.last_step());
}

TEST(ProgressTest, StepsAreProductiveTime) {
  Progress progress(At(0));
  progress.AttemptStarted(At(0));
  progress.StepDone(0, At(5));
  progress.StepDone(1, At(7));
  progress.StepDone(1, At(8));  // seen again
  progress.StepDone(4, At(10));
  EXPECT_EQ(progress.lost().start, seconds(5));
  EXPECT_EQ(progress.productive(), seconds(5));
  EXPECT_EQ(progress.steps_done(), 5u);
  EXPECT_EQ(progress.last_step(), 4);
}

TEST(ProgressTest, RepeatedStepsWereLost) {
  Progress progress(At(0));
  progress.AttemptStarted(At(0));
  for (int step = 0; step <= 10; ++step) progress.StepDone(step, At(1 + step));
  progress.AttemptFailed(At(14));
  EXPECT_EQ(progress.productive(), seconds(10));
  EXPECT_EQ(progress.lost().unfinished_step, seconds(3));
  progress.AttemptStarted(At(16));
  progress.StepDone(8, At(17));  // the state of step 7 was saved
  EXPECT_EQ(progress.productive(), seconds(7));
  EXPECT_EQ(progress.lost().repeated_steps, seconds(3));
  EXPECT_EQ(progress.steps_repeated(), 3u);
  EXPECT_EQ(progress.lost().downtime, seconds(2));
  EXPECT_EQ(progress.lost().start, seconds(2));
  progress.StepDone(9, At(18));
  EXPECT_EQ(progress.productive(), seconds(8));
}

// All time is accounted for, whatever happens.
TEST(ProgressTest, ProductiveAndLostTimeAreAllTime) {
  Progress progress(At(0));
  int now = 4;  // until then the job waited for other nodes
  for (int attempt = 0; attempt < 20; ++attempt) {
    progress.AttemptStarted(At(now));
    // Every fourth attempt fails before its first step.
    if (attempt % 4 == 3) now += 1;
    for (int step = attempt * 3; attempt % 4 != 3 && step < attempt * 3 + 7; ++step) {
      now += 1 + step % 3;
      progress.StepDone(step, At(now));
    }
    progress.AttemptFailed(At(now += 2));
    now += 3;
  }
  progress.AttemptStarted(At(now));
  const LostTime& lost = progress.lost();
  EXPECT_EQ(progress.productive() + lost.start + lost.unfinished_step + lost.repeated_steps +
                lost.downtime,
            seconds(now));
}

TEST(ProgressTest, AProgramMayGoBackInAnAttempt) {
  Progress progress(At(0));
  progress.AttemptStarted(At(0));
  for (int step = 0; step <= 5; ++step) progress.StepDone(step, At(step));
  progress.StepDone(3, At(6));
  EXPECT_EQ(progress.lost().repeated_steps, seconds(3));
  EXPECT_EQ(progress.productive(), seconds(3));
  EXPECT_EQ(progress.steps_repeated(), 3u);
}

TEST(ProgressTest, StepsBetweenAttemptsAreIgnored) {
  Progress progress(At(0));
  progress.StepDone(1, At(0));
  progress.AttemptStarted(At(1));
  progress.AttemptFailed(At(2));
  progress.StepDone(2, At(3));
  EXPECT_EQ(progress.steps_done(), 0u);
}

TEST(ProgressTest, MarksAreBoundedAndRecentStepsExact) {
  Progress progress(At(0));
  progress.AttemptStarted(At(0));
  for (int step = 0; step <= 1'000'000; ++step) progress.StepDone(step, At(step));
  progress.StepDone(999'990, At(1'000'001));
  EXPECT_EQ(progress.lost().repeated_steps, seconds(11));
  progress.StepDone(0, At(1'000'002));
  EXPECT_EQ(progress.productive(), seconds(1));
}

}  // namespace
}  // namespace rankrun::agent
