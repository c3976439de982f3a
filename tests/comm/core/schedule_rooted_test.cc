#include "comm/core/schedule_rooted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/comm/core/schedule_simulation.h"

namespace rankrun::comm {
namespace {

constexpr SendMode kModes[] = {SendMode::kEager, SendMode::kRendezvous};

struct ScheduleRootedTest : testing::TestWithParam<int> {
  static int ranks() { return GetParam(); }
};

void ReduceToRoot(int ranks, int root, SendMode mode) {
  ScheduleSimulation world(ranks, ReduceTree, root);
  for (int r = 0; r < ranks; ++r) world[r].inputs[0] = Share(r, 0);
  ASSERT_TRUE(world.Run(mode));
  const Content& result = world[root].outputs[0];
  EXPECT_EQ(result.shares, SharesFrom(root, ranks, 0));
  EXPECT_EQ(result.divisions, ranks > 1 ? 1 : 0);
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(world[r].outputs.empty(), r != root);
    EXPECT_EQ(world[r].inputs[0], Share(r, 0));
    EXPECT_LE(ScratchBlocks(world[r].schedule), r == root ? 0 : 1);
    EXPECT_EQ(world[r].blocks_sent(), r == root ? 0 : 1);
  }
  EXPECT_EQ(world[root].messages(),
            static_cast<int>(std::bit_width(static_cast<unsigned int>(ranks - 1))));
}

TEST_P(ScheduleRootedTest, ReduceGivesTheRootTheSumInTheOrderOfRanksFromTheRootOn) {
  for (int root = 0; root < ranks(); ++root) {
    for (SendMode mode : kModes) ReduceToRoot(ranks(), root, mode);
  }
}

TEST_P(ScheduleRootedTest, ReduceMayOverwriteTheRootsInput) {
  for (int root = 0; root < ranks(); ++root) {
    ScheduleSimulation world(ranks(), ReduceTree, root);
    for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = Share(r, 0);
    world[root].in_place = true;
    world[root].outputs[0] = Share(root, 0);
    ASSERT_TRUE(world.Run(SendMode::kEager));
    EXPECT_EQ(world[root].outputs[0].shares, SharesFrom(root, ranks(), 0));
  }
}

void BroadcastInPieces(int ranks, int root, int pieces, SendMode mode) {
  auto make = [pieces](const RankPlace& place) { return BroadcastChain(place, pieces); };
  ScheduleSimulation world(ranks, make, root);
  for (int i = 0; i < pieces; ++i) world[root].outputs[i] = Share(root, i);
  ASSERT_TRUE(world.Run(mode));
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(world[r].outputs.size(), static_cast<size_t>(pieces));
    for (int i = 0; i < pieces; ++i) EXPECT_EQ(world[r].outputs[i], Share(root, i));
    bool is_last = r == (root + ranks - 1) % ranks;
    EXPECT_EQ(world[r].blocks_sent(), is_last ? 0 : pieces);
    int steps = r == root || is_last ? pieces : pieces + 1;
    EXPECT_EQ(world[r].messages(), ranks == 1 ? 0 : steps);
  }
}

TEST_P(ScheduleRootedTest, BroadcastReachesAllFromEveryRootInAnyNumberOfPieces) {
  for (int root = 0; root < ranks(); ++root) {
    for (SendMode mode : kModes) {
      for (int pieces : {1, 2, 3, 7}) BroadcastInPieces(ranks(), root, pieces, mode);
    }
  }
}

// Each rank receives a piece in the step in which it sends the one before.
TEST_P(ScheduleRootedTest, BroadcastReceivesWhileItSends) {
  for (int r = 1; r < ranks() - 1; ++r) {
    Schedule schedule = BroadcastChain({r, ranks()}, 5);
    auto both = std::ranges::count_if(schedule, [&](const Step& step) {
      return step.send_to == r + 1 && step.receive_from == r - 1 &&
             step.to.index == step.from.index + 1;
    });
    EXPECT_EQ(both, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleRootedTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17));

}  // namespace
}  // namespace rankrun::comm
