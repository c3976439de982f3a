#include "agent/process/stuck_watch.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StuckTimesTest, CountsFromTheFirstScanInStateD) {
  FakeClock clock;
  StuckTimes times;
  EXPECT_EQ(times.Note(7, 'D', clock.Now()), Duration::zero());
  clock.Advance(seconds(3));
  EXPECT_EQ(times.Note(7, 'D', clock.Now()), seconds(3));
  EXPECT_EQ(times.Note(8, 'D', clock.Now()), Duration::zero());
}

TEST(StuckTimesTest, AnyOtherStateBeginsAnew) {
  for (char state : {'R', 'S', 'T', 'Z', '\0'}) {
    FakeClock clock;
    StuckTimes times;
    times.Note(7, 'D', clock.Now());
    clock.Advance(seconds(3));
    EXPECT_EQ(times.Note(7, state, clock.Now()), Duration::zero());
    EXPECT_EQ(times.Note(7, 'D', clock.Now()), Duration::zero());
  }
}

TEST(StuckTimesTest, AReusedPidBeginsAnew) {
  FakeClock clock;
  StuckTimes times;
  times.Note(7, 'D', clock.Now());
  times.Note(8, 'D', clock.Now());
  times.ForgetAllBut({{8, 'D'}});
  clock.Advance(seconds(3));
  EXPECT_EQ(times.Note(7, 'D', clock.Now()), Duration::zero());
  EXPECT_EQ(times.Note(8, 'D', clock.Now()), seconds(3));
}

TEST(StuckLimitTest, IsANumberOfSecondsAboveZero) {
  EXPECT_EQ(StuckLimit("5"), seconds(5));
  EXPECT_EQ(StuckLimit("0.25"), milliseconds(250));
  EXPECT_EQ(StuckLimit("1e300"), std::chrono::hours(24 * 365));
  for (const char* off : {"", "0", "-1", "five", "5s", "nan", " 5"}) {
    EXPECT_EQ(StuckLimit(off), std::nullopt) << off;
  }
}

}  // namespace
}  // namespace rankrun::agent
