#include "agent/health/quiet_watch.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct QuietWatchTest : testing::Test {
  // Looks each second for some seconds; returns when the stacks were wanted.
  std::vector<int> Look(int count) {
    std::vector<int> wanted;
    for (int i = 0; i < count; ++i) {
      for (WorkerSample& sample : samples) sample.cpu_time += share[sample.global_rank] * 10;
      if (watch.Look(samples, TimePoint(seconds(now)))) wanted.push_back(now);
      now += 1;
    }
    return wanted;
  }

  QuietWatch watch{seconds(10)};
  std::vector<WorkerSample> samples = {{.global_rank = 0, .pid = 7}, {.global_rank = 1, .pid = 8}};
  std::map<int, milliseconds> share = {{0, milliseconds(0)}, {1, milliseconds(90)}};
  int now = 1'000;
};

TEST_F(QuietWatchTest, OneQuietWorkerIsEnoughAndReadingsBecomeRare) {
  EXPECT_EQ(Look(200), (std::vector<int>{1'010, 1'040, 1'160}));
}

TEST_F(QuietWatchTest, WorkersThatWorkAreNotRead) {
  share[0] = milliseconds(10);
  EXPECT_TRUE(Look(100).empty());
}

TEST_F(QuietWatchTest, AnotherQuietIsReadAgainButNotSoon) {
  EXPECT_EQ(Look(12), (std::vector<int>{1'010}));
  share[0] = milliseconds(50);
  EXPECT_TRUE(Look(3).empty());
  share[0] = milliseconds(0);
  EXPECT_EQ(Look(60), (std::vector<int>{1'040}));
}

TEST_F(QuietWatchTest, ReadingsOfManyShortQuietsBecomeRare) {
  std::vector<int> all;
  for (int i = 0; i < 100; ++i) {
    share[0] = milliseconds(0);
    for (int read : Look(12)) all.push_back(read - 1'000);
    share[0] = milliseconds(50);
    Look(3);
  }
  ASSERT_GE(all.size(), 4U);
  EXPECT_LE(all.size(), 5U) << "in 1500 s";
}

TEST_F(QuietWatchTest, WorkersWithTheLibraryShowTheirWaitsThemselves) {
  samples[1].groups.emplace_back();
  EXPECT_TRUE(Look(100).empty());
}

TEST_F(QuietWatchTest, TimeBeforeAStopDoesNotCount) {
  EXPECT_TRUE(Look(9).empty());
  watch.StartOver();
  EXPECT_EQ(Look(20), (std::vector<int>{1'019}));
}

TEST_F(QuietWatchTest, WithoutNoticesNothingIsRead) {
  QuietWatch off{seconds(0)};
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(off.Look(samples, TimePoint(seconds(i))));
}

}  // namespace
}  // namespace rankrun::agent
