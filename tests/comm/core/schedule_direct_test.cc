#include "comm/core/schedule_direct.h"

#include <gtest/gtest.h>

#include "tests/comm/core/schedule_simulation.h"

namespace rankrun::comm {
namespace {

struct ScheduleDirectTest : testing::TestWithParam<int> {
  static int ranks() { return GetParam(); }
  static ScheduleSimulation AllGather() {
    ScheduleSimulation world(ranks(), AllGatherDirect);
    for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = Share(r, 0);
    return world;
  }
  static ScheduleSimulation AllToAll() {
    ScheduleSimulation world(ranks(), AllToAllDirect);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = Share(r, i);
    }
    return world;
  }
};

TEST_P(ScheduleDirectTest, AllGatherPutsEveryInputInItsPlace) {
  ScheduleSimulation world = AllGather();
  ASSERT_TRUE(world.Run(SendMode::kEager));
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Share(i, 0));
  }
}

TEST_P(ScheduleDirectTest, AllToAllIsTheTransposition) {
  ScheduleSimulation world = AllToAll();
  ASSERT_TRUE(world.Run(SendMode::kEager));
  for (int r = 0; r < ranks(); ++r) {
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Share(i, r));
  }
}

// The documentation warns of it; the test also shows that the simulation finds
// a deadlock.
TEST_P(ScheduleDirectTest, BothNeedSendsThatCompleteAtOnce) {
  bool is_alone = ranks() == 1;
  EXPECT_EQ(AllGather().Run(SendMode::kRendezvous), is_alone);
  EXPECT_EQ(AllToAll().Run(SendMode::kRendezvous), is_alone);
}

TEST_P(ScheduleDirectTest, AllSendsPrecedeTheReceives) {
  for (auto make : {AllGatherDirect, AllToAllDirect}) {
    for (int r = 0; r < ranks(); ++r) {
      Schedule schedule = make({r, ranks()});
      ASSERT_EQ(schedule.size(), static_cast<size_t>(2 * ranks() - 1));
      for (int k = 1; k < ranks(); ++k) {
        const Step& send = schedule[static_cast<size_t>(k)];
        const Step& receive = schedule[static_cast<size_t>(ranks() - 1 + k)];
        EXPECT_EQ(send.send_to, (r + k) % ranks());
        EXPECT_EQ(send.receive_from, Step::kNobody);
        EXPECT_EQ(receive.send_to, Step::kNobody);
        EXPECT_EQ(receive.receive_from, (r - k + ranks()) % ranks());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleDirectTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17));

}  // namespace
}  // namespace rankrun::comm
