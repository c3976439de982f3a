// Runs examples/collectives and examples/c, which check their own results.

#include <gmock/gmock.h>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

struct Example {
  const char* program;
  const char* said;  // output of each rank on success
};

class CollectivesExampleTest : public ::testing::TestWithParam<Example> {};

TEST_P(CollectivesExampleTest, EachRankFindsItsResultRight) {
  for (int ranks : {1, 2, 4}) {
    Job job({.arguments = {"-n", std::to_string(ranks), test::Program(GetParam().program)}});
    EXPECT_EQ(job.Wait(milliseconds(60'000)), (ProcessExit{.signaled = false, .value = 0}))
        << job.Err() << job.Out();
    std::string out = job.Out();
    int right = 0;
    for (size_t at = 0; (at = out.find(GetParam().said, at)) != std::string::npos; ++at) ++right;
    EXPECT_EQ(right, ranks) << out;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CollectivesExampleTest,
    ::testing::Values(Example{"sample_sort", ": sorted\n"}, Example{"overlap", ": right\n"},
                      Example{"heat", ": as on one rank\n"}, Example{"reports", ": right\n"},
                      Example{"handover", ": right\n"}, Example{"pi", ": right\n"}),
    [](const auto& chosen) { return std::string(chosen.param.program); });

}  // namespace
}  // namespace rankrun::testing
