#include "agent/coordination/refusal_limit.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

constexpr TimePoint kBegin{std::chrono::hours(1)};

TEST(RefusalLimitTest, OneEventForEachNodeAndReasonIsWritten) {
  RefusalLimit limit;
  EXPECT_TRUE(limit.Admits({"n1", "another version"}, kBegin));
  EXPECT_FALSE(limit.Admits({"n1", "another version"}, kBegin));
  EXPECT_TRUE(limit.Admits({"n2", "another version"}, kBegin));
  EXPECT_TRUE(limit.Admits({"n1", "another --nnodes"}, kBegin));
}

TEST(RefusalLimitTest, ManyNamesAreBoundedUntilTheNextHour) {
  RefusalLimit limit;
  size_t written = 0;
  for (int i = 0; i < 1'000; ++i) written += limit.Admits({std::to_string(i), "no"}, kBegin);
  EXPECT_EQ(written, RefusalLimit::kMaxEvents);
  const TimePoint next = kBegin + RefusalLimit::kPeriod;
  EXPECT_FALSE(limit.Admits({"0", "no"}, next - std::chrono::milliseconds(1)));
  EXPECT_TRUE(limit.Admits({"0", "no"}, next));
}

}  // namespace
}  // namespace rankrun::agent
