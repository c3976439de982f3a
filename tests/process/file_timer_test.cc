// torchrun's file timer, with shell scripts as its clients.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct FileTimerTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  // Returns the options of a job with `body` as two workers. In `body`, `timer SCOPE
  // PID TIME SIGNAL` requests a timer.
  Job::Options Run(const std::string& body, std::vector<std::string> flags = {}) const {
    std::string script =
        folder.Script("worker.sh",
                      "timer() { printf '{\"version\": 1, \"pid\": %s, \"scope_id\": \"%s\", "
                      "\"expiration_time\": "
                      "%s, \"signal\": %s}\\n' $2 $1 $3 $4 > $TORCHELASTIC_TIMER_FILE; }\n" +
                          body);
    flags.insert(flags.end(), {"-n", "2", "--no-python", script});
    return {.arguments = flags, .variables = {{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"}}};
  }
  ScratchFolder folder;
};

TEST_F(FileTimerTest, AnExpiredTimerKillsItsWorkerOnly) {
  Job run(Run("if [ $RANK = 1 ]; then timer step $$ 1 9; fi; exec sleep 1000",
              {"--max-restarts", "1"}));
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 137}));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("rankrun: the timer \"step\" of pid "),
                               HasSubstr(" (rank 1) has expired; sending SIGKILL\n"),
                               HasSubstr("killed by SIGKILL, its timer \"step\" had expired "),
                               HasSubstr("cause: rank 1"), HasSubstr("next: restart 1 of 1")));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(FileTimerTest, AReleasedTimerKillsNobody) {
  Job run(
      Run("timer step $$ $(($(date +%s) + 2)) 9; timer step $$ -1 0; timer step $$ "
          "$(($(date +%s) + 1000)) 9; sleep 2.5"));
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0})) << run.Err();
}

TEST_F(FileTimerTest, AFloodOfBadRequestsIsSummarised) {
  Job run(
      Run("[ $RANK = 1 ] || exit 0; i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo no; done > "
          "$TORCHELASTIC_TIMER_FILE"));
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_LT(run.Err().size(), 3'000u);
  EXPECT_THAT(run.Err(), HasSubstr(" more requests were ignored"));
}

TEST_F(FileTimerTest, SignalZeroIsOnlyReported) {
  Job run(Run("timer step $$ 1 0; " + std::string("until [ -e ") + folder.Path("go") +
              " ]; do sleep 0.01; done"));
  ASSERT_TRUE(run.WaitForErr("has expired; its signal is 0: nothing is sent"));
  std::ofstream(folder.Path("go")) << "\n";
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
}

TEST_F(FileTimerTest, AChildOfAWorkerMayHaveATimer) {
  Job run(Run("sleep 1000 & timer step $! 1 15; wait $!; echo $?"));
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_EQ(run.Out(), "143\n143\n");
  EXPECT_THAT(run.Err(), HasSubstr(", below rank 1 has expired; sending SIGTERM\n"));
}

// Timers for processes that are neither a worker nor below one: the agent, this
// test, pid 1, pid 0 and a pid without a process.
TEST_F(FileTimerTest, StrangersAreSafe) {
  Job run(Run("timer a $PPID 1 9; timer b " + std::to_string(getpid()) +
              " 1 9; timer c 1 1 9; timer d 0 1 9; timer e 999999999 1 9; echo x > "
              "$TORCHELASTIC_TIMER_FILE; until [ -e " +
              folder.Path("go") + " ]; do sleep 0.01; done"));
  ASSERT_TRUE(run.WaitForErr("file timer: process " + std::to_string(getpid()) +
                             " is neither a worker nor below one, ignored"));
  ASSERT_TRUE(run.WaitForErr("file timer: not a JSON object, ignored: x"));
  std::ofstream(folder.Path("go")) << "\n";
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
}

TEST_F(FileTimerTest, TheUserMayNameThePipe) {
  std::string path = folder.Path("timers");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0) << "left by an earlier run";
  Job::Options options = Run("echo $TORCHELASTIC_TIMER_FILE");
  options.variables["TORCHELASTIC_TIMER_FILE"] = path;
  Job run(options);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_EQ(run.Out(), path + "\n" + path + "\n");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(FileTimerTest, AFileOfTheUsersIsNotReplaced) {
  std::string path = folder.Path("data");
  std::ofstream(path) << "precious";
  Job::Options options = Run("exit 0");
  options.variables["TORCHELASTIC_TIMER_FILE"] = path;
  Job run(options);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 2}));
  EXPECT_EQ(run.Err(), "rankrun: TORCHELASTIC_TIMER_FILE: " + path +
                           " is there and is no named pipe: remove it or name another path\n");
  EXPECT_EQ(ReadText(path), "precious");
}

TEST_F(FileTimerTest, WithoutTheSwitchTheVariableIsOnlyPassedOn) {
  Job::Options options = Run("echo ${TORCHELASTIC_TIMER_FILE-none}");
  options.variables = {{"TORCHELASTIC_TIMER_FILE", "/nowhere"}};
  Job run(options);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_EQ(run.Out(), "/nowhere\n/nowhere\n");
}

}  // namespace
}  // namespace rankrun::testing
