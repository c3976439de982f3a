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

// All of them meet in the one store of the agent.
TEST(ProgramsOfAWorkerTest, RunOneAfterTheOther) {
  const std::string script = test::Program("sample_sort") + " && " +
                             test::Program("parameter_server") + " TENSORPIPE && " +
                             test::Program("parameter_server") + " PROCESS_GROUP && " +
                             test::Program("pi");
  for (const char* backend : {"shm", "tcp", "gloo", "hierarchical"}) {
    Job job({.arguments = Shell({"-n", "3"}, script), .variables = {{"RANKRUN_BACKEND", backend}}});
    EXPECT_EQ(job.Wait(milliseconds(100'000)), Code(0)) << job.Err() << job.Out();
    const std::string out = job.Out();
    EXPECT_EQ(Count(out, ": sorted\n"), 3) << out;
    EXPECT_EQ(Count(out, " steps: y = 3 x + 1\n"), 2) << out;
    EXPECT_EQ(Count(out, ": right\n"), 3) << out;
  }
}

}  // namespace
}  // namespace rankrun::testing
