#include "bench/batches.h"

#include <gtest/gtest.h>

#include <utility>

namespace rankrun::bench {
namespace {

auto NoCheck() {
  return [] {};
}

TEST(BatchesTest, BatchOfGivenCallsIsNotCalibrated) {
  int calls = 0;
  BatchTimes times = MeasureBatches(
      BatchPlan{.warmup_calls = 2, .calls = 7, .batches = 3}, [&] { calls += 1; },
      [](double seconds) { return seconds; }, NoCheck());
  EXPECT_EQ(calls, 2 + 3 * 7);
  EXPECT_EQ(times.calls, 7);
  EXPECT_EQ(times.batches, 3);
}

TEST(BatchesTest, TimeIsThatOfTheSlowestRankByCall) {
  BatchTimes times = MeasureBatches(
      BatchPlan{.calls = 10, .batches = 1}, [] {}, [](double) { return 0.005; }, NoCheck());
  EXPECT_DOUBLE_EQ(times.microseconds, 500);
}

TEST(BatchesTest, CheckRunsAfterEachBatch) {
  int checks = 0;
  MeasureBatches(
      BatchPlan{.calls = 1, .batches = 4}, [] {}, [](double seconds) { return seconds; },
      [&] { checks += 1; });
  EXPECT_EQ(checks, 4);
}

TEST(BatchesTest, AfterTheLimitOfTheSlowestRankNoBatchBegins) {
  // This rank has just begun; another one is over the limit.
  BatchTimes times = MeasureBatches(
      BatchPlan{.calls = 1, .batches = 100, .limit = Seconds(3)}, [] {}, [](double) { return 3.5; },
      NoCheck());
  EXPECT_EQ(times.batches, 1);
}

TEST(BatchesTest, CallsAreChosenToFillABatch) {
  // A call that takes 1 ms on every rank, as reported by `slowest`.
  int calls = 0;
  int before = 0;
  BatchTimes times = MeasureBatches(
      BatchPlan{.warmup_calls = 0, .batches = 1, .batch = Seconds(0.02)}, [&] { calls += 1; },
      [&](double) { return 1e-3 * (calls - std::exchange(before, calls)); }, NoCheck());
  EXPECT_EQ(times.calls, 20);
}

}  // namespace
}  // namespace rankrun::bench
