// Runs examples/rpc, in which trainers call a parameter server.

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

}  // namespace
}  // namespace rankrun::testing
