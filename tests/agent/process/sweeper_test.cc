#include "agent/process/sweeper.h"

#include <gmock/gmock.h>

#include "agent/process/descendants.h"
#include "base/process/process_handle.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_signal.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// This process plays the agent. Its children are the leftover processes.
struct SweeperTest : testing::Test {
  SweeperTest() { BecomeSubreaper(); }
  ~SweeperTest() override { KillDescendants({}); }

  static pid_t Run(std::vector<std::string> environment, std::string script = "exec sleep 1000") {
    auto process = SpawnProcess({.file = "/bin/sh",
                                 .arguments = {"sh", "-c", std::move(script)},
                                 .environment = std::move(environment)});
    EXPECT_TRUE(process);
    return process ? process->pid : 0;
  }
  static void AwaitAge(pid_t pid) {
    EXPECT_TRUE(test::WaitFor([&] {
      return AgeOf(StartTimeOfProcess(pid)).value_or(milliseconds(0)) > milliseconds(1'100);
    }));
  }
  // Sweeps with SIGTERM until nothing is left.
  void Sweep() {
    sweeper.Sweep(SIGTERM);
    EXPECT_TRUE(loop.RunUntil([this] { return over; }, test::kLong));
  }

  Loop loop;
  bool over = false;
  std::vector<std::vector<pid_t>> signaled;  // in this order
  std::vector<std::string> shown;
  std::set<pid_t> helpers;
  Sweeper sweeper{loop,
                  {.on_nothing_left = [this] { over = true; },
                   .on_left = [this](const auto& pids, int) { signaled.push_back(pids); },
                   .show = [this](const std::string& text) { shown.push_back(text); },
                   .helpers = [this] { return helpers; }},
                  test::kLong};
  std::unique_ptr<Signal> child_ended = *Signal::Catch(loop, SIGCHLD, [this] {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info.si_pid = 0;
    sweeper.Check();
  });
};

TEST_F(SweeperTest, WithNothingLeftItIsOverAtOnce) {
  sweeper.Sweep(SIGTERM);
  EXPECT_TRUE(over);
}

TEST_F(SweeperTest, HelpersAndTheProcessesBelowThemAreNoLeftovers) {
  helpers = {Run({"A=1"}, "sleep 1000; true")};
  ASSERT_TRUE(test::WaitFor([] { return Descendants().size() == 2; }));
  sweeper.Sweep(SIGTERM);
  EXPECT_TRUE(over);
  over = false;
  pid_t other = Run({"A=1"});
  Sweep();
  EXPECT_THAT(signaled, ElementsAre(ElementsAre(other)));
  EXPECT_EQ(Descendants().size(), 2u);
}

// A process without an environment looks like one in the middle of exec.
TEST_F(SweeperTest, OnlyAProcessWithoutEnvironmentIsScannedTwiceWithItsDescendants) {
  pid_t without = Run({}, "A=1 sleep 1000; true");
  ASSERT_TRUE(test::WaitFor([] { return Descendants().size() == 2; }));
  pid_t below = Descendants()[1];
  pid_t other = Run({"A=1"});
  AwaitAge(other);
  Sweep();
  EXPECT_THAT(signaled, ElementsAre(ElementsAre(other), ElementsAre(without, below)));
}

TEST_F(SweeperTest, OptedOutProcessesAreNamedAndSurvive) {
  pid_t kept = Run({"RANKRUN_KEEP=1"});
  pid_t other = Run({"A=1"});
  ASSERT_TRUE(test::WaitFor([&] {
    return ReadOfProcess(kept, "comm") == "sleep\n" &&
           OptOutMarksOf({kept}).opted_out.contains(kept);
  }));
  Sweep();
  EXPECT_THAT(signaled, ElementsAre(ElementsAre(other)));
  EXPECT_THAT(shown, ElementsAre("rankrun: " + DescribeOptedOut(kept) + "\n"));
  EXPECT_TRUE(test::IsRunning(kept));
}

}  // namespace
}  // namespace rankrun::agent
