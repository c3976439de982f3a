// Worker processes that are hard to kill, with every kind of end of a job.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::Combine;
using ::testing::Values;

enum class End { kSuccess, kFailure, kOneSignal, kTwoSignals, kGuardianKilled, kAgentKilled };

const std::string kZoo = test::Program("zoo");

std::string NameOf(End end) {
  constexpr const char* kNames[] = {"Success",    "Failure",        "OneSignal",
                                    "TwoSignals", "GuardianKilled", "AgentKilled"};
  return kNames[static_cast<int>(end)];
}

struct ZooTest : ::testing::TestWithParam<std::tuple<const char*, End>> {
  void SetUp() override {
    AdoptOrphans();
    bystander = fork();
    if (bystander == 0) {
      execl(kZoo.c_str(), "zoo", "bystander", static_cast<char*>(nullptr));
      _exit(99);
    }
  }

  // Waits until all processes exist, then ends the job; returns its exit.
  static std::optional<ProcessExit> Finish(Job& run, End end) {
    if (end == End::kSuccess || end == End::kFailure) return run.Wait();
    EXPECT_TRUE(WaitFor([&] { return run.Out() == "up\nup\n"; })) << run.Err();
    if (end == End::kAgentKilled) kill(run.Agent(), SIGKILL);
    if (end == End::kGuardianKilled) run.Signal(SIGKILL);
    if (end == End::kOneSignal || end == End::kTwoSignals) run.Signal(SIGINT);
    if (end == End::kTwoSignals) {
      EXPECT_TRUE(run.WaitForErr("stopping the workers"));
      run.Signal(SIGTERM);  // a second SIGINT so soon would count as the same request
    }
    return run.Wait();
  }

  static ProcessExit Expected(End end) {
    switch (end) {
      case End::kSuccess:
        return {.signaled = false, .value = 0};
      case End::kFailure:
        return {.signaled = false, .value = 7};
      case End::kOneSignal:
      case End::kTwoSignals:
        return {.signaled = true, .value = SIGINT};
      case End::kGuardianKilled:
        return {.signaled = true, .value = SIGKILL};
      case End::kAgentKilled:
        return {.signaled = false, .value = 205};
    }
    __builtin_unreachable();
  }

  pid_t bystander;
};

TEST_P(ZooTest, NothingIsLeftAndTheBystanderLives) {
  auto [animal, end] = GetParam();
  std::string stay = end == End::kSuccess ? "0" : end == End::kFailure ? "7" : "stay";
  std::string patience = end == End::kTwoSignals ? "1000" : "0.2";
  Job run({.arguments = {"-n", "2", "--shutdown-timeout", patience, "--no-python", kZoo, animal,
                         stay}});
  EXPECT_EQ(Finish(run, end), Expected(end)) << run.Err();
  // Without the guardian, the agent kills them. run.Wait() does not wait for it.
  milliseconds left(end == End::kGuardianKilled ? 5'000 : 0);
  auto only_it_is_left = [this] { return ChildrenOf(getpid()) == std::vector{bystander}; };
  auto reap = [] {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info.si_pid = 0;
  };
  EXPECT_TRUE(WaitFor(
      [&] {
        reap();
        return only_it_is_left();
      },
      left));
  EXPECT_EQ(kill(bystander, SIGKILL), 0);
  ProcessExit killed{.signaled = true, .value = SIGKILL};
  std::optional<ProcessExit> exit;
  ASSERT_TRUE(WaitFor([&] { return (exit = ReapByPid(bystander)).has_value(); }));
  EXPECT_EQ(exit, killed);
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

INSTANTIATE_TEST_SUITE_P(All, ZooTest,
                         Combine(Values("daemons", "sessions", "stubborn", "stopped", "closed",
                                        "executed", "uninterruptible", "bomb"),
                                 Values(End::kSuccess, End::kFailure, End::kOneSignal,
                                        End::kTwoSignals, End::kGuardianKilled, End::kAgentKilled)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  NameOf(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace rankrun::testing
