#include "agent/process/opted_out_processes.h"

#include <gmock/gmock.h>

#include "agent/process/descendants.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// Runs programs with an environment of their own.
struct OptedOutTest : testing::Test {
  OptedOutTest() { BecomeSubreaper(); }
  ~OptedOutTest() override { KillDescendants({}); }

  static pid_t Run(std::vector<std::string> environment, std::string script = "exec sleep 1000") {
    auto process = SpawnProcess({.file = "/bin/sh",
                                 .arguments = {"sh", "-c", std::move(script)},
                                 .environment = std::move(environment)});
    EXPECT_TRUE(process);
    return process ? process->pid : 0;
  }
};

TEST_F(OptedOutTest, AreProgramsExecutedWithTheVariable) {
  pid_t kept = Run({"A=1", "RANKRUN_KEEP=1", "B=2"});
  pid_t first = Run({"RANKRUN_KEEP=1"});
  pid_t other = Run({"A=1"});
  pid_t without = Run({}, "sleep 1000; true");
  EXPECT_EQ(FindOptedOut({}, milliseconds(10'000)), (std::set{kept, first}));
  OptOutMarks marks;
  // The start is reported before the environment can be read.
  ASSERT_TRUE(test::WaitFor([&] {
    marks = OptOutMarksOf(Descendants());
    return marks.opted_out.size() == 2 && marks.not_opted_out.contains(other);
  }));
  EXPECT_EQ(marks.opted_out, (std::set{kept, first}));
  EXPECT_FALSE(marks.not_opted_out.contains(without));
}

TEST_F(OptedOutTest, OtherValuesAndNamesDoNotCount) {
  Run({"RANKRUN_KEEP=0"});
  Run({"RANKRUN_KEEP="});
  Run({"RANKRUN_KEEP=10"});
  Run({"NOT_RANKRUN_KEEP=1"});
  Run({"A=RANKRUN_KEEP=1"});
  EXPECT_TRUE(OptOutMarksOf(Descendants()).opted_out.empty());
}

TEST_F(OptedOutTest, SparedProcessesAreNotScanned) {
  pid_t spared = Run({"RANKRUN_KEEP=1"});
  EXPECT_TRUE(FindOptedOut({spared}, milliseconds(10'000)).empty());
}

TEST_F(OptedOutTest, WithoutDescendantsThereIsNone) {
  EXPECT_TRUE(OptOutMarksOf({}).opted_out.empty());
  EXPECT_TRUE(FindOptedOut({}, milliseconds(10'000)).empty());
}

TEST_F(OptedOutTest, AProcessThatIsGoneHasNotOptedOut) {
  pid_t pid = Run({"RANKRUN_KEEP=1"}, "exit 0");
  test::WaitForExit(pid);
  OptOutMarks marks = OptOutMarksOf({pid});
  EXPECT_TRUE(marks.opted_out.empty() && marks.not_opted_out.empty());
}

TEST_F(OptedOutTest, AreDescribedByPidAndName) {
  pid_t pid = Run({"RANKRUN_KEEP=1"});
  ASSERT_TRUE(test::WaitFor([&] { return ReadOfProcess(pid, "comm") == "sleep\n"; }));
  EXPECT_EQ(DescribeOptedOut(pid),
            "left running because of RANKRUN_KEEP: pid " + std::to_string(pid) + " (sleep)");
}

TEST_F(OptedOutTest, DescendantsAreNotTopmost) {
  pid_t kept = Run({"RANKRUN_KEEP=1"}, "sleep 1000 & sleep 1000");
  pid_t other = Run({"RANKRUN_KEEP=1"});
  ASSERT_TRUE(test::WaitFor([] { return Descendants().size() == 4; }));
  // A process in the middle of exec has no environment yet; retry.
  OptOutMarks marks;
  ASSERT_TRUE(test::WaitFor([&] {
    marks = OptOutMarksOf(Descendants());
    return marks.opted_out.size() == 4;
  }));
  EXPECT_EQ(TopmostOf(marks.opted_out), (std::set{kept, other}));
  EXPECT_TRUE(TopmostOf({}).empty());
}

TEST_F(OptedOutTest, SurviveTheKillWithTheirChildren) {
  pid_t kept = Run({"RANKRUN_KEEP=1"}, "sleep 1000 & sleep 1000");
  pid_t other = Run({});
  ASSERT_TRUE(test::WaitFor([&] { return Descendants().size() == 4; }));
  EXPECT_EQ(KillDescendants(FindOptedOut({}, milliseconds(10'000))), 1);
  EXPECT_NE(kill(other, 0), 0);
  EXPECT_EQ(Descendants().size(), 3u);
  EXPECT_TRUE(test::IsRunning(kept));
}

}  // namespace
}  // namespace rankrun::agent
