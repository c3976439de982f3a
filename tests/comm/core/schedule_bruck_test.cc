#include "comm/core/schedule_bruck.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/comm/core/schedule_simulation.h"

namespace rankrun::comm {
namespace {

constexpr SendMode kModes[] = {SendMode::kEager, SendMode::kRendezvous};

struct ScheduleBruckTest : testing::TestWithParam<int> {
  static int ranks() { return GetParam(); }
  // Returns log2 of the number of ranks, rounded up.
  static int rounds() {
    return static_cast<int>(std::bit_width(static_cast<unsigned int>(ranks() - 1)));
  }
};

TEST_P(ScheduleBruckTest, AllGatherPutsEveryInputInItsPlace) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world(ranks(), AllGatherBruck);
    for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = Share(r, 0);
    ASSERT_TRUE(world.Run(mode));
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Share(i, 0));
    }
  }
}

TEST_P(ScheduleBruckTest, StepsBytesAndScratchAreAsDocumented) {
  ScheduleSimulation world(ranks(), AllGatherBruck);
  for (int r = 0; r < ranks(); ++r) {
    EXPECT_EQ(world[r].messages(), rounds());
    EXPECT_EQ(world[r].blocks_sent(), ranks() - 1);
    EXPECT_EQ(world[r].schedule.size(), static_cast<size_t>(rounds() + ranks() + 1));
    EXPECT_EQ(ScratchBlocks(world[r].schedule), ranks());
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleBruckTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17));

}  // namespace
}  // namespace rankrun::comm
