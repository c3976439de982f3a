#include "comm/core/schedule_doubling.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/comm/core/schedule_simulation.h"

namespace rankrun::comm {
namespace {

constexpr SendMode kModes[] = {SendMode::kEager, SendMode::kRendezvous};

struct ScheduleDoublingTest : testing::TestWithParam<int> {
  static int ranks() { return GetParam(); }
  static int participants() { return HalvingParts(ranks()); }
  static int rounds() {
    return static_cast<int>(std::bit_width(static_cast<unsigned int>(participants()))) - 1;
  }
  static bool IsInPair(int r) { return r < 2 * (ranks() - participants()); }
  // Carries out an all-reduce of `parts` outputs.
  static ScheduleSimulation AllReduced(Schedule (*make)(const RankPlace&), int parts,
                                       SendMode mode) {
    ScheduleSimulation world(ranks(), make);
    for (int r = 0; r < ranks(); ++r) {
      for (int i = 0; i < parts; ++i) world[r].outputs[i] = Share(r, i);
    }
    EXPECT_TRUE(world.Run(mode));
    return world;
  }
};

// Checks that all ranks have the same bits, and that every rank's share is
// there once, in the order of ranks.
void ExpectAllReduced(ScheduleSimulation& world, int parts) {
  int ranks = world.size();
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(world[r].outputs.size(), static_cast<size_t>(parts));
    EXPECT_EQ(ScratchBlocks(world[r].schedule), 0);
    for (int i = 0; i < parts; ++i) {
      EXPECT_EQ(world[r].outputs[i], world[0].outputs[i]) << "rank " << r;
      EXPECT_EQ(world[r].outputs[i].shares, SharesFrom(0, ranks, i));
      EXPECT_EQ(world[r].outputs[i].divisions, ranks > 1 ? 1 : 0);
    }
  }
}

TEST_P(ScheduleDoublingTest, DoublingReducesInTheOrderOfRanks) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world = AllReduced(AllReduceDoubling, 1, mode);
    ExpectAllReduced(world, 1);
  }
}

TEST_P(ScheduleDoublingTest, HalvingReducesInTheOrderOfRanks) {
  for (SendMode mode : kModes) {
    ScheduleSimulation world = AllReduced(AllReduceHalving, participants(), mode);
    ExpectAllReduced(world, participants());
  }
}

TEST_P(ScheduleDoublingTest, BothGiveTheSameBits) {
  ScheduleSimulation doubling = AllReduced(AllReduceDoubling, 1, SendMode::kEager);
  ScheduleSimulation halving = AllReduced(AllReduceHalving, participants(), SendMode::kEager);
  EXPECT_EQ(doubling[0].outputs[0], halving[0].outputs[0]);
}

TEST_P(ScheduleDoublingTest, StepsAndBytesAreAsDocumented) {
  int p = participants();
  for (int r = 0; r < ranks(); ++r) {
    ScheduleSimulation doubling(ranks(), AllReduceDoubling);
    ScheduleSimulation halving(ranks(), AllReduceHalving);
    bool folded = IsInPair(r) && r % 2 == 1;
    int more_steps = IsInPair(r) ? 2 : 0;
    int more_sends = IsInPair(r) ? 1 : 0;
    int exchanges = folded ? 0 : rounds();
    EXPECT_EQ(doubling[r].messages(), exchanges + more_steps);
    EXPECT_EQ(doubling[r].blocks_sent(), exchanges + more_sends);
    EXPECT_EQ(halving[r].messages(), 2 * exchanges + more_steps);
    EXPECT_EQ(halving[r].blocks_sent(), (folded ? 0 : 2 * (p - 1)) + more_sends * p);
  }
}

TEST_P(ScheduleDoublingTest, PartsAreTheLargestPowerOfTwo) {
  EXPECT_TRUE(std::has_single_bit(static_cast<unsigned int>(participants())));
  EXPECT_LE(participants(), ranks());
  EXPECT_GT(2 * participants(), ranks());
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScheduleDoublingTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17));

}  // namespace
}  // namespace rankrun::comm
