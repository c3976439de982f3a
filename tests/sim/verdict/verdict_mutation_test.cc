#include <gtest/gtest.h>

#include "agent/report/verdict_rule.h"
#include "tests/sim/verdict/trial.h"

namespace rankrun::sim {
namespace {

using agent::VerdictRule;

struct Missing {
  VerdictRule rule;
  const char* name;
};

// Proves that the simulator needs each rule: without it, a victim is named within 2,000 seeds.
class VerdictMutationTest : public testing::TestWithParam<Missing> {
 protected:
  VerdictMutationTest() { agent::g_missing_rule = GetParam().rule; }
  ~VerdictMutationTest() override { agent::g_missing_rule = VerdictRule::kNone; }
};

TEST_P(VerdictMutationTest, ARuleIsMissedWithinTwoThousandSeeds) {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    TrialResult result = Try(seed);
    if (result.violation.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.violation.c_str());
    return;
  }
  FAIL() << "2,000 seeds found nothing";
}

#define RULE(name) \
  Missing { VerdictRule::k##name, #name }
INSTANTIATE_TEST_SUITE_P(
    Rules, VerdictMutationTest,
    testing::Values(RULE(Hung), RULE(TheOnlyOneWithAnotherError), RULE(TheOnlyOneThatLogged),
                    RULE(Failed), RULE(SilentFailureIsStronger), RULE(Named),
                    RULE(ExitedAfterSignal), RULE(FailedAfterWarning),
                    RULE(TheOnlyOneThatLostNobody), RULE(KilledInException), RULE(InputEnded),
                    RULE(TimedOut), RULE(TheOnlyOneThatLeftEarly), RULE(RaisedAfterSignal),
                    RULE(LostPeer), RULE(LowestRank), RULE(NamedByMost), RULE(FirstEnded),
                    RULE(NamedOnesLostNobody), RULE(SeveralExitInTheirHandlers),
                    RULE(TwoLostTheOnlyOne), RULE(SilentOneMayBeInnocent), RULE(SeveralLeftEarly),
                    RULE(AllRaiseInTheirHandlers)),
    [](const auto& param) { return param.param.name; });
#undef RULE

}  // namespace
}  // namespace rankrun::sim
