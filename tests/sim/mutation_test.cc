#include "agent/coordination/mutation.h"

#include <gtest/gtest.h>

#include "tests/sim/sim.h"

namespace rankrun::sim {
namespace {

using agent::Mutation;

struct Bug {
  Mutation mutation;
  const char* name;
};

// Proves that the simulator finds real bugs: each deliberate one breaks an
// invariant within 2,000 seeds.
class MutationTest : public testing::TestWithParam<Bug> {
 protected:
  MutationTest() { agent::g_mutation = GetParam().mutation; }
  ~MutationTest() override { agent::g_mutation = Mutation::kNone; }
};

TEST_P(MutationTest, IsFoundWithinTwoThousandSeeds) {
  constexpr Faults kKinds[] = {Faults::kAll, Faults::kFailures, Faults::kBlips, Faults::kSilence};
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    int nodes = 3 + static_cast<int>(seed % 4);
    bool is_stuck = seed % 16 == 15;
    bool is_sick = seed % 16 == 14;
    Faults faults = is_stuck ? Faults::kStuck : is_sick ? Faults::kSick : kKinds[seed / 4 % 4];
    Result result = Simulate({.seed = seed, .nodes = nodes, .faults = faults});
    if (result.violation.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.violation.c_str());
    return;
  }
  FAIL() << "2,000 seeds found nothing";
}

INSTANTIATE_TEST_SUITE_P(Bugs, MutationTest,
                         testing::Values(Bug{Mutation::kGoBeforeAllPrepared, "GoBeforeAllPrepared"},
                                         Bug{Mutation::kToldBeforeReaped, "ToldBeforeReaped"},
                                         Bug{Mutation::kLinkLossIsProof, "LinkLossIsProof"},
                                         Bug{Mutation::kSuccessInOnePhase, "SuccessInOnePhase"},
                                         Bug{Mutation::kWorldBeginsAnew, "WorldBeginsAnew"},
                                         Bug{Mutation::kIncarnationIgnored, "IncarnationIgnored"},
                                         Bug{Mutation::kBudgetOffByOne, "BudgetOffByOne"},
                                         Bug{Mutation::kLeaveIsFailure, "LeaveIsFailure"},
                                         Bug{Mutation::kLeaseIgnored, "LeaseIgnored"},
                                         Bug{Mutation::kStaleWordCounts, "StaleWordCounts"},
                                         Bug{Mutation::kRecordKeptLate, "RecordKeptLate"},
                                         Bug{Mutation::kKillBoundIgnored, "KillBoundIgnored"},
                                         Bug{Mutation::kStuckIsWaitedFor, "StuckIsWaitedFor"},
                                         Bug{Mutation::kRefusalNeedsNoTrial, "RefusalNeedsNoTrial"},
                                         Bug{Mutation::kReplacedStays, "ReplacedStays"}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace rankrun::sim
