#include "agent/health/progress.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WorkFacts Before() {
  return {.cpu_time = seconds(7),
          .main_cpu_time = seconds(5),
          .io_bytes = 100'000,
          .written_bytes = 500,
          .received_bytes = 100'000,
          .wakes = 40,
          .knows_connections = true};
}

bool Shows(const WorkFacts& now, bool calls_peer = false) {
  return ShowsWork(Before(), now, seconds(1), calls_peer);
}

TEST(ProgressTest, AWorkerWhoseCountersStandDoesNotWork) {
  EXPECT_FALSE(Shows(Before()));
  EXPECT_FALSE(Shows(Before(), true));
}

TEST(ProgressTest, AnySingleCounterShowsWork) {
  WorkFacts now = Before();
  now.cpu_time += milliseconds(50);
  EXPECT_TRUE(Shows(now));
  now = Before();
  now.main_cpu_time += milliseconds(10);
  EXPECT_TRUE(Shows(now)) << "a short step of a main thread that mostly sleeps";
  now = Before();
  now.io_bytes += 4'096;
  EXPECT_TRUE(Shows(now));
  now = Before();
  now.received_bytes += 4'096;
  EXPECT_TRUE(Shows(now)) << "a slow download";
  now = Before();
  now.written_bytes += 1;
  EXPECT_TRUE(Shows(now)) << "a line of a log";
}

TEST(ProgressTest, ALoopThatLooksWhetherItMayContinueDoesNotWork) {
  WorkFacts now = Before();
  now.wakes += 10;
  now.cpu_time += milliseconds(8);
  now.main_cpu_time += milliseconds(2);
  now.io_bytes += 200;
  now.received_bytes += 200;
  EXPECT_FALSE(Shows(now));
}

TEST(ProgressTest, ACallOnASocketEndsOnlyWithData) {
  WorkFacts now = Before();
  now.wakes += 1;
  EXPECT_FALSE(Shows(now, false));
  EXPECT_TRUE(Shows(now, true));
}

TEST(ProgressTest, EachWakeIsWorkIfTheKernelShowsNoConnections) {
  WorkFacts now = Before();
  now.wakes += 1;
  now.knows_connections = false;
  EXPECT_TRUE(Shows(now));
}

TEST(ProgressTest, CountersThatFallBecauseAProcessHasEndedShowNoWork) {
  WorkFacts now = Before();
  now.cpu_time = now.main_cpu_time = {};
  now.io_bytes = now.written_bytes = now.received_bytes = 0;
  EXPECT_FALSE(Shows(now));
}

TimePoint At(int second) { return TimePoint(seconds(1'000 + second)); }

TEST(ProgressTest, DataBetweenWorkersCountsAtEitherEnd) {
  EXPECT_EQ(LastExchange({{7, 0, At(1)}, {7, 1, At(4)}}), At(4));
  EXPECT_EQ(LastExchange({{7, 0, At(6)}, {8, 0, At(2)}, {7, 1, At(4)}, {8, 2, At(3)}}), At(6));
}

TEST(ProgressTest, DataFromOutsideTheJobDoesNotCount) {
  EXPECT_EQ(LastExchange({{7, 0, At(1)}, {9, 0, At(8)}, {7, 1, At(4)}}), At(4));
  EXPECT_EQ(LastExchange({{7, 0, At(1)}, {8, 1, At(4)}}), std::nullopt);
  EXPECT_EQ(LastExchange({}), std::nullopt);
}

TEST(ProgressTest, DataOfAWorkerToItselfDoesNotCount) {
  EXPECT_EQ(LastExchange({{7, 0, At(1)}, {7, 0, At(4)}}), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
