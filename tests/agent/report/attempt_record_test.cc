#include "agent/report/attempt_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun::agent {
namespace {

WorkerRecord Exited(int code) {
  WorkerRecord record;
  record.exit = ProcessExit{.signaled = false, .value = code};
  return record;
}

WorkerRecord Killed(int signal_number) {
  WorkerRecord record;
  record.exit = ProcessExit{.signaled = true, .value = signal_number};
  return record;
}

WorkerRecord NotStarted(ErrorCode code) {
  WorkerRecord record;
  record.start_error = Error{code, "start x: why"};
  return record;
}

TEST(AttemptRecordTest, TheJobsExitCodeIsThatOfTheCause) {
  EXPECT_EQ(ExitCodeOf(Exited(1)), 1);
  EXPECT_EQ(ExitCodeOf(Exited(85)), 85);
  EXPECT_EQ(ExitCodeOf(Exited(255)), 255);
}

TEST(AttemptRecordTest, ASignalIsShownAsAShellDoes) {
  EXPECT_EQ(ExitCodeOf(Killed(SIGKILL)), 137);
  EXPECT_EQ(ExitCodeOf(Killed(SIGSEGV)), 139);
}

TEST(AttemptRecordTest, AFailedStartIsShownAsAShellDoes) {
  EXPECT_EQ(ExitCodeOf(NotStarted(ErrorCode::kNotFound)), 127);
  EXPECT_EQ(ExitCodeOf(NotStarted(ErrorCode::kSystem)), 126);
  EXPECT_EQ(ExitCodeOf(NotStarted(ErrorCode::kExhausted)), 126);
}

TEST(AttemptRecordTest, OnlyExitZeroIsNoFailure) {
  EXPECT_FALSE(Exited(0).failed());
  EXPECT_TRUE(Exited(1).failed());
  EXPECT_TRUE(Killed(SIGTERM).failed());
  EXPECT_TRUE(NotStarted(ErrorCode::kNotFound).failed());
  EXPECT_TRUE(WorkerRecord().failed());
}

TEST(AttemptRecordTest, ThePeerDeathMessageNamesTheRankAndItsEnd) {
  EXPECT_EQ(PeerDeathMessage(Killed(SIGKILL)), "rank 0 was killed by SIGKILL, not sent by rankrun");
  EXPECT_EQ(PeerDeathMessage(Exited(3)), "rank 0 ended with exit code 3");
  EXPECT_EQ(PeerDeathMessage(Exited(3), "n3"), "rank 0 on node n3 ended with exit code 3");
  EXPECT_THAT(PeerDeathMessage(NotStarted(ErrorCode::kNotFound)),
              testing::StartsWith("rank 0 could not be started: "));
}

TEST(AttemptRecordTest, AnOuterLauncherIsKnownByItsVariable) {
  EXPECT_EQ(ParentErrorFile({"A=1", "TORCHELASTIC_ERROR_FILE=/e.json"}), "/e.json");
  EXPECT_EQ(ParentErrorFile({"XTORCHELASTIC_ERROR_FILE=/e.json"}), "");
  EXPECT_EQ(ParentErrorFile({}), "");
}

}  // namespace
}  // namespace rankrun::agent
