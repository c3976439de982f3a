#include "tests/sim/sim.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace rankrun::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kShare = 10;  // of the runs
#else
constexpr int kShare = 1;
#endif

// RANKRUN_SIM_SEED: where other seeds begin.
uint64_t FirstSeed() {
  const char* text = std::getenv("RANKRUN_SIM_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

void ExpectAllHold(Options options, int runs) {
  for (int i = 0; i < runs; ++i, ++options.seed) {
    Result result = Simulate(options);
    ASSERT_EQ(result.violation, "") << CommandLine(options);
  }
}

class FreshSeedsTest : public testing::TestWithParam<int> {};

TEST_P(FreshSeedsTest, WhateverGoesWrongTheInvariantsHold) {
  ExpectAllHold({.seed = FirstSeed(), .nodes = GetParam()}, 3'000 / kShare);
}

TEST_P(FreshSeedsTest, SilenceAndPartitionsGiveNoTwoRoundsAtOnce) {
  ExpectAllHold({.seed = FirstSeed(), .nodes = GetParam(), .faults = Faults::kSilence},
                1'000 / kShare);
}

TEST_P(FreshSeedsTest, FailuresNeverCostMoreThanTheBudget) {
  ExpectAllHold({.seed = FirstSeed(), .nodes = GetParam(), .faults = Faults::kFailures},
                500 / kShare);
}

TEST_P(FreshSeedsTest, ABlipChangesNothing) {
  ExpectAllHold({.seed = FirstSeed(), .nodes = GetParam(), .faults = Faults::kBlips}, 500 / kShare);
}

TEST_P(FreshSeedsTest, AProcessThatDoesNotDieHoldsUpNobodyElse) {
  ExpectAllHold({.seed = FirstSeed(), .nodes = GetParam(), .faults = Faults::kStuck},
                1'000 / kShare);
}

INSTANTIATE_TEST_SUITE_P(Clusters, FreshSeedsTest, testing::Range(2, 9));

TEST(SimTest, WhatFailedOnceHolds) {
  std::ifstream file(RANKRUN_SOURCE_DIR "/tests/sim/seeds.txt");
  int runs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    Options options;
    std::string faults;
    std::istringstream(line) >> options.seed >> options.nodes >> faults;
    auto known = FaultsNamed(faults);
    ASSERT_TRUE(known) << line;
    options.faults = *known;
    ExpectAllHold(options, 1);
    runs += 1;
  }
  EXPECT_GT(runs, 10);
}

TEST(SimTest, ASeedReplaysExactly) {
  for (uint64_t seed = 1; seed < 50; ++seed) {
    Result once = Simulate({.seed = seed, .nodes = 5});
    Result again = Simulate({.seed = seed, .nodes = 5});
    EXPECT_EQ(once.events, again.events);
    EXPECT_EQ(once.took, again.took);
    EXPECT_EQ(once.verdict, again.verdict);
  }
}

TEST(SimTest, TenThousandNodesFormAndLoseOne) {
  constexpr int kNodes = 10'000 / kShare;
  Result result =
      Simulate({.nodes = kNodes, .max = kNodes, .faults = Faults::kNone, .loses_one = true});
  EXPECT_EQ(result.violation, "");
  EXPECT_EQ(result.rounds, 2);
  EXPECT_EQ(result.verdict, 0);
}

}  // namespace
}  // namespace rankrun::sim
