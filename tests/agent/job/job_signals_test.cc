#include "agent/job/job_signals.h"

#include <gtest/gtest.h>

#include <vector>

namespace rankrun::agent {
namespace {

TEST(JobSignalsTest, TheDefaultListEndsAndUserSignalsPass) {
  for (int number : kEndSignals) EXPECT_EQ(MeaningOf(number, kEndSignals), SignalMeaning::kStop);
  for (int number : {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGSTOP, SIGWINCH}) {
    EXPECT_EQ(MeaningOf(number, kEndSignals), SignalMeaning::kPass) << number;
  }
}

TEST(JobSignalsTest, UnlistedSignalsKeepTheirDefault) {
  std::vector<int> only_user{SIGUSR1};
  EXPECT_EQ(MeaningOf(SIGUSR1, only_user), SignalMeaning::kStop);
  EXPECT_EQ(MeaningOf(SIGUSR2, only_user), SignalMeaning::kPass);
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGXCPU}) {
    EXPECT_EQ(MeaningOf(number, only_user), SignalMeaning::kKill) << number;
  }
}

TEST(JobSignalsTest, OnlyCatchableSignalsThatReportNoFaultCanEndAJob) {
  for (int number : kForwardedSignals) EXPECT_TRUE(CanEndJob(number)) << number;
  for (int number : {SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP, SIGSEGV, SIGPIPE, 0, 65}) {
    EXPECT_FALSE(CanEndJob(number)) << number;
  }
}

}  // namespace
}  // namespace rankrun::agent
