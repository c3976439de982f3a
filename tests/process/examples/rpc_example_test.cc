// Runs examples/rpc: trainers that call a parameter server, and an agent of the program.

#include <gmock/gmock.h>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

TEST(RpcExampleTest, TheServerHasTheRightLineWithEachBackend) {
  for (const char* backend : {"TENSORPIPE", "PROCESS_GROUP"}) {
    Job job({.arguments = {"-n", "4", test::Program("parameter_server"), backend}});
    EXPECT_EQ(job.Wait(milliseconds(100'000)), (ProcessExit{.signaled = false, .value = 0}))
        << job.Err() << job.Out();
    EXPECT_THAT(job.Out(), HasSubstr("900 steps: y = 3 x + 1\n"));
  }
}

TEST(RpcExampleTest, AnAgentOfTheProgramCarriesCallsReferencesAndErrors) {
  Job job({.arguments = {"-n", "3", test::Program("own_agent")}});
  EXPECT_EQ(job.Wait(milliseconds(100'000)), (ProcessExit{.signaled = false, .value = 0}))
      << job.Err();
  EXPECT_EQ(job.Out(),
            "1 + 2 = 3\n"
            "async: 10\n"
            "async: 11\n"
            "async: 12\n"
            "worker1 keeps: hello worker 1\n"
            "length: 14\n"
            "bytes: 1000000\n"
            "RemoteError: call of fail on worker worker2: no luck\n"
            "UnknownMethodError: call of multiply on worker worker2: there is no method multiply: "
            "want add, bytes_of, end, fail, greet, length_of, release, wait\n"
            "DistTimeoutError: call of wait on worker worker1: there is no reply within its "
            "time-out\n"
            "DistNetworkError: call of end on worker worker2: the worker has ended\n");
}

}  // namespace
}  // namespace rankrun::testing
