// Runs examples/join, in which the ranks have different amounts of data.

#include <gmock/gmock.h>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

void ExpectTheLine(const std::vector<std::string>& arguments) {
  Job job({.arguments = arguments});
  EXPECT_EQ(job.Wait(milliseconds(100'000)), (ProcessExit{.signaled = false, .value = 0}))
      << job.Err() << job.Out();
  EXPECT_THAT(job.Out(), HasSubstr("y = 3 x + 1\n"));
}

TEST(JoinExampleTest, AllRanksEndWithTheSameLine) {
  for (const char* ranks : {"1", "3"}) ExpectTheLine({"-n", ranks, test::Program("uneven")});
}

TEST(JoinExampleTest, AlsoAfterARestart) {
  ExpectTheLine({"-n", "3", "--max-restarts", "1", test::Program("uneven"), "--die-rank", "1"});
}

}  // namespace
}  // namespace rankrun::testing
