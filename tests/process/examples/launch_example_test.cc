// Runs examples/launch, a program that starts its own workers.

#include <gmock/gmock.h>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LaunchExampleTest, ASweepTriesEachRateAndPassesOverAFailure) {
  AdoptOrphans();
  Job sweep({.arguments = {"2", "0.01", "1e300", "0.5"}, .program = test::Program("sweep")});
  EXPECT_EQ(sweep.Wait(milliseconds(120'000)), (ProcessExit{.signaled = false, .value = 0}))
      << sweep.Err();
  EXPECT_THAT(sweep.Out(),
              AllOf(HasSubstr("rate 0.01: loss "), HasSubstr("rate 1e300: failed: rank "),
                    HasSubstr("best rate: 0.5\n")));
  EXPECT_THAT(sweep.Err(), HasSubstr("sweep: the loss is not a number"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

}  // namespace
}  // namespace rankrun::testing
