#include "cli/trace_clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace rankrun::cli {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMillisecond;
enum : uint8_t { kAllReduce = 1, kBroadcast = 3, kAllToAll = 8 };

Trace TraceOn(const std::string& host, int rank, int64_t realtime_offset = 0) {
  Trace trace{};
  trace.rank = rank;
  trace.host = host;
  trace.boot = "boot of " + host;
  trace.realtime_offset = realtime_offset;
  trace.groups = {{.name = "world", .key = 1, .size = 2}};
  return trace;
}

void AddCall(Trace& trace, uint64_t number, int64_t begin, int64_t end, uint8_t kind = kAllReduce) {
  TracedOperation operation{};
  operation.kind = kind;
  operation.is_finished = true;
  operation.group = 0;
  operation.begin = begin;
  operation.end = end;
  operation.number = number;
  operation.count = 1;
  trace.operations.push_back(operation);
}

TEST(TraceClocksTest, ProcessesOfOneBootHaveOneClock) {
  TraceClocks clocks;
  Trace first = TraceOn("a", 0);
  Trace second = TraceOn("a", 1, 5 * kSecond);
  clocks.Add(first);
  clocks.Add(second);
  clocks.Align();
  EXPECT_EQ(clocks.hosts().size(), 1U);
  EXPECT_EQ(clocks.Aligned(second, 17), 17);
}

TEST(TraceClocksTest, WithoutACommonCallTheSystemClocksCount) {
  TraceClocks clocks;
  Trace first = TraceOn("a", 0, 10 * kSecond);
  Trace second = TraceOn("b", 1, 4 * kSecond);
  AddCall(first, 1, 0, 10, kBroadcast);  // its root does not wait
  AddCall(second, 1, 0, 10, kBroadcast);
  AddCall(first, 4, 0, 10, kAllToAll);  // its parts may be empty
  AddCall(second, 4, 0, 10, kAllToAll);
  AddCall(first, 2, 20, 30);
  AddCall(second, 3, 20, 30);
  second.operations.back().has_failed = true;
  clocks.Add(first);
  clocks.Add(second);
  clocks.Align();
  EXPECT_EQ(clocks.hosts()[1].error, std::nullopt);
  EXPECT_EQ(clocks.Aligned(second, 17), 17 - 6 * kSecond);
}

TEST(TraceClocksTest, OneCallBoundsTheDifferenceFromBothSides) {
  TraceClocks clocks;
  Trace first = TraceOn("a", 0);
  Trace second = TraceOn("b", 1);
  // By the clock of a: a is in the call from 100 to 150, b from 120 to 140.
  AddCall(first, 1, 100, 150);
  AddCall(second, 1, 1120, 1140);
  clocks.Add(first);
  clocks.Add(second);
  clocks.Align();
  // 100 - 1140 <= difference <= 150 - 1120.
  EXPECT_EQ(clocks.Aligned(second, 1120), 1120 - 1005);
  EXPECT_EQ(clocks.hosts()[1].error, 35);
}

TEST(TraceClocksTest, TheErrorGrowsWithTheTimeFromTheCalls) {
  TraceClocks clocks;
  Trace first = TraceOn("a", 0);
  Trace second = TraceOn("b", 1);
  AddCall(first, 1, 100, 150);
  AddCall(second, 1, 1120, 1140);
  AddCall(second, 2, 40 * kSecond, 60 * kSecond, kBroadcast);
  clocks.Add(first);
  clocks.Add(second);
  clocks.Align();
  constexpr int64_t kDrift = 60 * kSecond / 20'000;
  EXPECT_NEAR(static_cast<double>(*clocks.hosts()[1].error), kDrift + 35, 1);
}

// A minute of calls with random delays, of a host whose clock drifts by 20 millionths.
TEST(TraceClocksTest, TheErrorIsWithinTheBoundsThoughClocksDrift) {
  std::mt19937_64 random(1);
  auto delay = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  auto other = [](int64_t time) { return 7 * kSecond + time + time / 50'000; };
  TraceClocks clocks;
  std::vector<Trace> traces = {TraceOn("a", 0), TraceOn("a", 1), TraceOn("b", 2), TraceOn("b", 3)};
  for (uint64_t number = 1; number <= 6000; ++number) {
    const auto at = static_cast<int64_t>(number) * 10 * kMillisecond;
    std::vector<int64_t> begins;
    int64_t all_are_in = 0;
    for (size_t i = 0; i < traces.size(); ++i) {
      begins.push_back(at + delay(500'000));
      all_are_in = std::max(all_are_in, begins.back());
    }
    for (size_t i = 0; i < traces.size(); ++i) {
      const int64_t end = all_are_in + 20'000 + delay(100'000);
      const bool is_other = i >= 2;
      AddCall(traces[i], number, is_other ? other(begins[i]) : begins[i],
              is_other ? other(end) : end);
    }
  }
  for (const Trace& trace : traces) clocks.Add(trace);
  clocks.Align();
  constexpr int64_t kDrift = 2 * kSecond / 50'000;  // in two seconds
  ASSERT_TRUE(clocks.hosts()[1].error.has_value());
  EXPECT_LT(*clocks.hosts()[1].error, 150'000);
  for (int64_t time = 0; time < 60 * kSecond; time += kSecond) {
    EXPECT_LT(std::abs(clocks.Aligned(traces[3], other(time)) - time),
              *clocks.hosts()[1].error + kDrift)
        << time;
  }
}

}  // namespace
}  // namespace rankrun::cli
