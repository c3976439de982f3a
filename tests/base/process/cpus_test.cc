#include "base/process/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace rankrun {
namespace {

TEST(CpusTest, RangesReadAsTasksetTakesThem) {
  EXPECT_EQ(FormatCpus({}), "");
  EXPECT_EQ(FormatCpus({7}), "7");
  EXPECT_EQ(FormatCpus({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(CpusTest, AMaskHasABitForEach) {
  EXPECT_TRUE(CpuMask({}).empty());
  EXPECT_EQ(CpuMask({0, 2}), (std::vector<unsigned long>{5}));
  EXPECT_EQ(CpuMask({1, 64, 191}), (std::vector<unsigned long>{2, 1, 1UL << 63}));
}

TEST(CpusTest, TheAllowedOnesAreThoseOfTheKernel) {
  auto allowed = AllowedCpus();
  ASSERT_TRUE(allowed) << allowed.error().message;
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(static_cast<int>(allowed->size()), CPU_COUNT(&set));
  for (int cpu : *allowed) EXPECT_TRUE(CPU_ISSET(cpu, &set)) << cpu;
}

}  // namespace
}  // namespace rankrun
