#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "tests/paths.h"
#include "tests/sim/verdict/trial.h"

namespace rankrun::sim {
namespace {

#ifdef RANKRUN_SANITIZED
constexpr int kRuns = 500;
#else
constexpr int kRuns = 3'000;
#endif

uint64_t FirstSeed() {
  if (const char* text = std::getenv("RANKRUN_SIM_SEED")) return std::strtoull(text, nullptr, 10);
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(now / std::chrono::microseconds(1));
}

TEST(VerdictSimTest, TheCulpritIsNamedOnEveryNode) {
  const uint64_t first = FirstSeed();
  std::map<std::string, int> trials;
  for (uint64_t seed = first; seed < first + kRuns; ++seed) {
    TrialResult result = Try(seed);
    trials[result.fault] += 1;
    ASSERT_EQ(result.violation, "") << "repeat: " << test::Program(TrialCommand(seed));
  }
  for (const auto& [fault, count] : trials) std::cout << count << " times: " << fault << '\n';
  EXPECT_GT(trials.size(), 30U);
}

// They find each missing rule (verdict_mutation_test.cc).
TEST(VerdictSimTest, WithoutAMissingRuleTheFirstSeedsHold) {
  for (uint64_t seed = 1; seed <= kRuns / 5; ++seed) {
    ASSERT_EQ(Try(seed).violation, "") << "repeat: " << test::Program(TrialCommand(seed));
  }
}

}  // namespace
}  // namespace rankrun::sim
