#include "tests/sim/sim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/paths.h"

namespace rankrun::sim {
namespace {

#ifdef RANKRUN_SANITIZED
constexpr int kShare = 10;  // of the runs
#else
constexpr int kShare = 1;
#endif

// Returns the violated invariant of a run, with the command that repeats it; empty
// if all held.
std::string Violation(const Options& options) {
  Result result = Simulate(options);
  if (result.violation.empty()) return "";
  return result.violation + "\nrepeat: " + test::Program(CommandLine(options));
}

// Simulates seeds that no run had before: they begin with the microseconds of the
// clock. RANKRUN_SIM_SEED is the first seed instead, to repeat a test.
class FreshSeedsTest : public testing::TestWithParam<int> {
 protected:
  void ExpectAllHold(Faults faults, int runs) {
    Options options{.seed = first_seed_, .nodes = GetParam(), .faults = faults};
    for (int i = 0; i < runs; ++i, ++options.seed) {
      ASSERT_EQ(Violation(options), "") << "add this line to tests/sim/seeds.txt: " << options.seed
                                        << " " << options.nodes << " " << NameOf(faults);
    }
    std::cout << "seeds " << first_seed_ << " to " << options.seed - 1
              << "; repeat: RANKRUN_SIM_SEED=" << first_seed_ << std::endl;
  }

 private:
  static uint64_t FirstSeed() {
    if (const char* text = std::getenv("RANKRUN_SIM_SEED")) return std::strtoull(text, nullptr, 10);
    auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(now / std::chrono::microseconds(1));
  }

  uint64_t first_seed_ = FirstSeed();
};

TEST_P(FreshSeedsTest, WhateverGoesWrongTheInvariantsHold) {
  ExpectAllHold(Faults::kAll, 3'000 / kShare);
}

TEST_P(FreshSeedsTest, SilenceAndPartitionsGiveNoTwoRoundsAtOnce) {
  ExpectAllHold(Faults::kSilence, 1'000 / kShare);
}

TEST_P(FreshSeedsTest, FailuresNeverCostMoreThanTheBudget) {
  ExpectAllHold(Faults::kFailures, 500 / kShare);
}

TEST_P(FreshSeedsTest, ABlipChangesNothing) { ExpectAllHold(Faults::kBlips, 500 / kShare); }

TEST_P(FreshSeedsTest, AProcessThatDoesNotDieHoldsUpNobodyElse) {
  ExpectAllHold(Faults::kStuck, 1'000 / kShare);
}

TEST_P(FreshSeedsTest, ANodeThatFailsEachTimeChangesPlacesWithASpare) {
  ExpectAllHold(Faults::kSick, 200 / kShare);
}

INSTANTIATE_TEST_SUITE_P(Clusters, FreshSeedsTest, testing::Range(2, 9));

TEST(SimTest, WhatFailedOnceHolds) {
  std::ifstream file(test::InSource("tests/sim/seeds.txt"));
  int runs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    Options options;
    std::string faults;
    std::istringstream(line) >> options.seed >> options.nodes >> faults;
    auto known = FaultsNamed(faults);
    ASSERT_TRUE(known) << line;
    options.faults = *known;
    EXPECT_EQ(Violation(options), "");
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
