#include "agent/kept.h"

#include <gmock/gmock.h>

#include "agent/descendants.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// Programs that are executed with an environment of their own.
struct KeptTest : testing::Test {
  KeptTest() { BecomeSubreaper(); }
  ~KeptTest() override { KillDescendants({}); }

  static pid_t Run(std::vector<std::string> environment, std::string script = "exec sleep 1000") {
    auto process = SpawnProcess({.file = "/bin/sh",
                                 .arguments = {"sh", "-c", std::move(script)},
                                 .environment = std::move(environment)});
    EXPECT_TRUE(process);
    return process ? process->pid : 0;
  }
};

TEST_F(KeptTest, IsWhatWasExecutedWithTheVariable) {
  pid_t kept = Run({"A=1", "RANKRUN_KEEP=1", "B=2"});
  pid_t first = Run({"RANKRUN_KEEP=1"});
  pid_t other = Run({"A=1"});
  pid_t without = Run({}, "sleep 1000; true");
  EXPECT_EQ(FindKept({}, milliseconds(10'000)), (std::set{kept, first}));
  KeepMarks marks;
  // Its start is told before its environment can be read.
  ASSERT_TRUE(test::WaitFor([&] {
    marks = KeepMarksOf(Descendants());
    return marks.kept.size() == 2 && marks.not_kept.contains(other);
  }));
  EXPECT_EQ(marks.kept, (std::set{kept, first}));
  EXPECT_FALSE(marks.not_kept.contains(without));
}

TEST_F(KeptTest, OtherValuesAndNamesDoNotCount) {
  Run({"RANKRUN_KEEP=0"});
  Run({"RANKRUN_KEEP="});
  Run({"RANKRUN_KEEP=10"});
  Run({"NOT_RANKRUN_KEEP=1"});
  Run({"A=RANKRUN_KEEP=1"});
  EXPECT_TRUE(KeepMarksOf(Descendants()).kept.empty());
}

TEST_F(KeptTest, TheSparedAreNotLookedAt) {
  pid_t spared = Run({"RANKRUN_KEEP=1"});
  EXPECT_TRUE(FindKept({spared}, milliseconds(10'000)).empty());
}

TEST_F(KeptTest, WithoutDescendantsThereIsNone) {
  EXPECT_TRUE(KeepMarksOf({}).kept.empty());
  EXPECT_TRUE(FindKept({}, milliseconds(10'000)).empty());
}

TEST_F(KeptTest, AProcessThatIsGoneIsNotKept) {
  pid_t pid = Run({"RANKRUN_KEEP=1"}, "exit 0");
  test::WaitForExit(pid);
  KeepMarks marks = KeepMarksOf({pid});
  EXPECT_TRUE(marks.kept.empty() && marks.not_kept.empty());
}

TEST_F(KeptTest, IsNamed) {
  pid_t pid = Run({"RANKRUN_KEEP=1"});
  ASSERT_TRUE(test::WaitFor([&] { return ReadOfProcess(pid, "comm") == "sleep\n"; }));
  EXPECT_EQ(DescribeKept(pid),
            "left running because of RANKRUN_KEEP: pid " + std::to_string(pid) + " (sleep)");
}

TEST_F(KeptTest, WhatIsBelowOneIsNotTopmost) {
  pid_t kept = Run({"RANKRUN_KEEP=1"}, "sleep 1000 & sleep 1000");
  pid_t other = Run({"RANKRUN_KEEP=1"});
  ASSERT_TRUE(test::WaitFor([] { return Descendants().size() == 4; }));
  // Between fork and exec they are there, and amid exec they have no environment.
  KeepMarks marks;
  ASSERT_TRUE(test::WaitFor([&] {
    marks = KeepMarksOf(Descendants());
    return marks.kept.size() == 4;
  }));
  EXPECT_EQ(TopmostOf(marks.kept), (std::set{kept, other}));
  EXPECT_TRUE(TopmostOf({}).empty());
}

TEST_F(KeptTest, ItAndItsChildrenOutliveTheEndOfTheOthers) {
  pid_t kept = Run({"RANKRUN_KEEP=1"}, "sleep 1000 & sleep 1000");
  pid_t other = Run({});
  ASSERT_TRUE(test::WaitFor([&] { return Descendants().size() == 4; }));
  EXPECT_EQ(KillDescendants(FindKept({}, milliseconds(10'000))), 1);
  EXPECT_NE(kill(other, 0), 0);
  EXPECT_EQ(Descendants().size(), 3u);
  EXPECT_TRUE(test::IsRunning(kept));
}

}  // namespace
}  // namespace rankrun::agent
