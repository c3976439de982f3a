// The schedules of every backend, carried out for all ranks in one thread,
// against plain loops.

#include "comm/core/schedule.h"

#include <gtest/gtest.h>

#include "tests/comm/core/schedule_simulation.h"

namespace rankrun::comm {
namespace {

constexpr SendMode kModes[] = {SendMode::kEager, SendMode::kRendezvous};

struct ScheduleTest : testing::TestWithParam<int> {
  static int ranks() { return GetParam(); }
  // Returns the shares that a ring reduces to part `i`: the way starts after
  // rank i and ends there.
  static std::vector<int> OnRing(int i) { return SharesFrom((i + 1) % ranks(), ranks(), i); }
};

TEST_P(ScheduleTest, AllGatherPutsEveryInputInItsPlace) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world(ranks(), AllGatherPairwise);
    for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = Share(r, 0);
    ASSERT_TRUE(world.Run(mode));
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Share(i, 0));
    }
  }
}

TEST_P(ScheduleTest, AllToAllIsTheTransposition) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world(ranks(), AllToAllPairwise);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = Share(r, i);
    }
    ASSERT_TRUE(world.Run(mode));
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].outputs[i], Share(i, r));
    }
  }
}

void GatherAndScatter(int ranks, int root, SendMode mode) {
  ScheduleSimulation gather(ranks, GatherLinear, root);
  ScheduleSimulation scatter(ranks, ScatterLinear, root);
  for (int r = 0; r < ranks; ++r) {
    gather[r].inputs[0] = Share(r, 0);
    scatter[root].inputs[r] = Share(root, r);
  }
  ASSERT_TRUE(gather.Run(mode));
  ASSERT_TRUE(scatter.Run(mode));
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(gather[root].outputs[r], Share(r, 0));
    EXPECT_EQ(scatter[r].outputs[0], Share(root, r));
  }
}

TEST_P(ScheduleTest, GatherAndScatterAreOneAnothersReverse) {
  for (int root = 0; root < ranks(); ++root) {
    for (SendMode mode : kModes) GatherAndScatter(ranks(), root, mode);
  }
}

TEST_P(ScheduleTest, BroadcastReachesAllFromEveryRoot) {
  for (int root = 0; root < ranks(); ++root) {
    for (SendMode mode : kModes) {
      ScheduleSimulation world(ranks(), BroadcastTree, root);
      world[root].outputs[0] = Share(root, 0);
      ASSERT_TRUE(world.Run(mode));
      for (int r = 0; r < ranks(); ++r) EXPECT_EQ(world[r].outputs[0], Share(root, 0));
    }
  }
}

TEST_P(ScheduleTest, AllReduceHasEveryRanksShareOnceInEveryPart) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world(ranks(), AllReduceRing);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) world[r].outputs[i] = Share(r, i);
    }
    ASSERT_TRUE(world.Run(mode));
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) {
        EXPECT_EQ(world[r].outputs[i].shares, OnRing(i));
        EXPECT_EQ(world[r].outputs[i], world[0].outputs[i]);
      }
    }
  }
}

TEST_P(ScheduleTest, ReduceScatterGivesEachRankItsPartAndLeavesInputs) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world(ranks(), ReduceScatterRing);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < ranks(); ++i) world[r].inputs[i] = Share(r, i);
    }
    ASSERT_TRUE(world.Run(mode));
    for (int r = 0; r < ranks(); ++r) {
      EXPECT_EQ(world[r].outputs[0].shares, OnRing(r));
      EXPECT_LE(ScratchBlocks(world[r].schedule), 2);
      for (int i = 0; i < ranks(); ++i) EXPECT_EQ(world[r].inputs[i], Share(r, i));
    }
  }
}

void ReduceOnRing(int ranks, int root, SendMode mode) {
  ScheduleSimulation world(ranks, ReduceRing, root);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < ranks; ++i) world[r].inputs[i] = Share(r, i);
  }
  ASSERT_TRUE(world.Run(mode));
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(world[r].outputs.empty(), r != root);
    EXPECT_LE(ScratchBlocks(world[r].schedule), 3);
    for (int i = 0; i < ranks; ++i) {
      EXPECT_EQ(world[r].inputs[i], Share(r, i));
      EXPECT_EQ(world[root].outputs[i].shares, SharesFrom((i + 1) % ranks, ranks, i));
    }
  }
}

TEST_P(ScheduleTest, ReduceGivesTheRootAllPartsAndWritesNoOutputElsewhere) {
  for (int root = 0; root < ranks(); ++root) {
    for (SendMode mode : kModes) ReduceOnRing(ranks(), root, mode);
  }
}

TEST_P(ScheduleTest, NobodyLeavesABarrierThatOneHasNotEntered) {
  for (SendMode mode : kModes) {
    for (int absent = 0; absent < ranks(); ++absent) {
      ScheduleSimulation world(ranks(), BarrierDissemination);
      for (int r = 0; r < ranks(); ++r) world[r].inputs[0] = {};
      ScheduleSimulation whole = world;
      EXPECT_TRUE(whole.Run(mode));
      // Operation that never sends or receives.
      world[absent].schedule = {{.to = {Part::Place::kOutput, 0}, .receive_from = absent}};
      EXPECT_FALSE(world.Run(mode));
      for (int r = 0; r < ranks(); ++r) EXPECT_FALSE(world[r].done()) << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleTest, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17));

}  // namespace
}  // namespace rankrun::comm
