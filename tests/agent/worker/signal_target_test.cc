#include "agent/worker/signal_target.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace rankrun::agent {
namespace {

// Text of /proc/PID/status of a process that blocks, ignores and catches a signal each, or none
// (0).
std::string Status(int blocked, int ignored, int caught) {
  auto line = [](const char* name, int number) {
    char digits[17];
    unsigned long mask = number == 0 ? 0 : 1UL << (number - 1);
    std::snprintf(digits, sizeof digits, "%016lx", mask);
    return name + (":\t" + std::string(digits)) + "\n";
  };
  return "Name:\tpython3\nSigPnd:\t0000000000000000\n" + line("SigBlk", blocked) +
         line("SigIgn", ignored) + line("SigCgt", caught);
}

bool IsAlone(const std::string& status, int signal_number, std::string_view program = "/bin/train",
             std::string_view wait_channel = "futex_wait_queue") {
  return IsForProcessAlone({.status = status, .program = program, .wait_channel = wait_channel},
                           signal_number);
}

TEST(SignalTargetTest, AProcessThatCatchesOrBlocksASignalGetsItAlone) {
  for (int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGRTMAX}) {
    EXPECT_TRUE(IsAlone(Status(0, 0, number), number)) << number;
    EXPECT_TRUE(IsAlone(Status(number, 0, 0), number)) << "for sigwait or a signalfd";
    EXPECT_FALSE(IsAlone(Status(0, number, 0), number)) << "its children may handle it";
    EXPECT_FALSE(IsAlone(Status(0, 0, SIGINT), number)) << number;
  }
}

TEST(SignalTargetTest, SignalsOfATerminalAndSigkillAreForAll) {
  for (int number : {SIGINT, SIGQUIT, SIGKILL}) {
    EXPECT_FALSE(IsAlone(Status(0, 0, number), number)) << number;
  }
}

TEST(SignalTargetTest, AShellThatWaitsForItsCommandDoesNotGetASignalAlone) {
  const std::string traps = Status(0, 0, SIGTERM);
  for (const char* shell : {"/bin/sh", "/usr/bin/bash", "/bin/dash", "/usr/bin/zsh"}) {
    for (const char* waits : {"do_wait", "sigsuspend", "__x64_sys_rt_sigsuspend", "0", ""}) {
      EXPECT_FALSE(IsAlone(traps, SIGTERM, shell, waits)) << shell << waits;
    }
    EXPECT_TRUE(IsAlone(traps, SIGTERM, shell, "do_sigtimedwait")) << shell;
  }
  EXPECT_TRUE(IsAlone(traps, SIGTERM, "/usr/bin/python3.11", "do_wait")) << "it joins a child";
  EXPECT_TRUE(IsAlone(traps, SIGTERM, "/usr/bin/python3.11", ""));
  EXPECT_TRUE(IsAlone(traps, SIGTERM, "/opt/bash-like", "do_wait"));
}

TEST(SignalTargetTest, IgnoringIsHandling) {
  EXPECT_TRUE(
      Handles({.status = Status(0, SIGUSR1, 0), .program = {}, .wait_channel = {}}, SIGUSR1));
  EXPECT_FALSE(
      Handles({.status = Status(0, 0, SIGUSR1), .program = {}, .wait_channel = {}}, SIGUSR2));
}

TEST(SignalTargetTest, WithoutFactsASignalIsForAll) {
  EXPECT_FALSE(IsAlone("", SIGTERM));
  EXPECT_FALSE(IsAlone("SigCgt:", SIGTERM));
  EXPECT_FALSE(IsAlone("SigCgt:\tx\n", SIGTERM));
}

TEST(SignalTargetTest, TheFactsAreThoseOfTheProcess) {
  signal(SIGUSR1, SIG_DFL);
  EXPECT_FALSE(HandlesSignal(getpid(), SIGUSR1));
  signal(SIGUSR1, [](int) {});
  EXPECT_TRUE(HandlesSignal(getpid(), SIGUSR1));
  EXPECT_TRUE(TakesSignalAlone(getpid(), Status(0, 0, SIGUSR1), SIGUSR1));
  signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace rankrun::agent
