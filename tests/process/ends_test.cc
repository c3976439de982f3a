// Ends of a job: by configured signals, at its time limit, after workers have
// saved, and with processes that have opted out.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessExit ExitCode(int code) { return {.signaled = false, .value = code}; }

struct EndsTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }
  void Touch(const std::string& name) const { std::ofstream(folder.Path(name)) << "\n"; }
  std::string Until(const std::string& name) const {
    return "until [ -e " + folder.Path(name) + " ]; do sleep 0.01; done";
  }
  ScratchFolder folder;
};

constexpr const char* kStay = "; echo up; while :; do sleep 0.01; done";

// --- signals

TEST_F(EndsTest, AChosenSignalEndsTheJobGently) {
  Job run({.arguments = Shell({"--signals-to-handle", "SIGUSR1"},
                              std::string("trap 'echo gently; exit 0' USR1") + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGUSR1);
  EXPECT_EQ(run.Wait(), KilledBy(SIGUSR1));
  EXPECT_THAT(run.Out(), HasSubstr("gently"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, AnAlarmCanBeChosen) {
  Job run({.arguments = Shell({"--signals-to-handle=SIGALRM,SIGTERM"},
                              std::string("trap 'echo gently; exit 0' ALRM") + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGALRM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGALRM));
  EXPECT_THAT(run.Out(), HasSubstr("gently"));
}

TEST_F(EndsTest, ASignalThatIsNotChosenEndsTheJobAtOnce) {
  Job run({.arguments =
               Shell({"-n", "2", "--signals-to-handle", "SIGTERM", "--shutdown-timeout", "1000"},
                     std::string("trap 'echo gently; exit 0' INT") + kStay)});
  ASSERT_TRUE(run.WaitForOut("up\nup\n"));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
  EXPECT_THAT(run.Out(), Not(HasSubstr("gently")));
  EXPECT_THAT(run.Err(),
              HasSubstr("SIGINT is not one of --signals-to-handle: killing the workers\n"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, TheFirstInstantCounts) {
  for (int i = 0; i < 10; ++i) {
    Job run({.arguments = Shell({}, "exec sleep 1000"), .in_child = [] {
               sigset_t term;  // makes SIGTERM pending before the first instruction
               sigemptyset(&term);
               sigaddset(&term, SIGTERM);
               sigprocmask(SIG_BLOCK, &term, nullptr);
               raise(SIGTERM);
             }});
    EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

TEST_F(EndsTest, WorkersKnowTheList) {
  Job run({.arguments = Shell({"--signals-to-handle", "SIGUSR1,SIGTERM"},
                              "echo $TORCHELASTIC_SIGNALS_TO_HANDLE")});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_EQ(run.Out(), "SIGUSR1,SIGTERM\n");
}

// --- time limit, failures, pauses

TEST_F(EndsTest, TheTimeLimitEndsTheJob) {
  Job run({.arguments = Shell({"--timeout", "0.3", "--max-restarts", "3"},
                              std::string("trap 'echo gently; exit 3' TERM") + kStay)});
  EXPECT_EQ(run.Wait(), ExitCode(124));
  EXPECT_THAT(run.Out(), HasSubstr("gently"));
  EXPECT_THAT(run.Err(), HasSubstr("--timeout: the job has run for 0.300 s: stopping"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// The process that the worker left behind is killed after a second.
TEST_F(EndsTest, TheTimeLimitDoesNotEndAJobThatIsDone) {
  Job run({.arguments =
               Shell({"--timeout", "0.9"}, "(trap '' TERM; exec sleep 1000) >/dev/null & exit 0")});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_THAT(run.Err(), Not(HasSubstr("--timeout")));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, AFailureMayLeaveTheOthersAlone) {
  Job run(
      {.arguments = Shell({"-n", "2", "--continue-on-failure"},
                          "if [ $RANK = 0 ]; then exit 3; fi; " + Until("go") + "; echo done")});
  ASSERT_TRUE(run.WaitForErr("--continue-on-failure: the others go on"));
  Touch("go");
  EXPECT_EQ(run.Wait(), ExitCode(3));
  EXPECT_EQ(run.Out(), "done\n");
  EXPECT_THAT(run.Err(), HasSubstr("cause: rank 0"));
}

TEST_F(EndsTest, APauseBeforeARestartEndsWithASignal) {
  Job run({.arguments = Shell({"--max-restarts", "9", "--restart-pause", "1000"}, "exit 4")});
  ASSERT_TRUE(run.WaitForErr("next: restart 2 of 9, in 1000.0 s: 2 failures in a row"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// --- saving

TEST_F(EndsTest, AWorkerThatSavesIsAwaited) {
  std::string save = "echo \"$RANK saving\" > $RANKRUN_SAVE_FIFO; " + Until("go") + "; echo saved";
  Job run({.arguments = Shell({"-n", "2", "--shutdown-timeout", "0.2", "--save-timeout", "1000"},
                              "if [ $RANK = 0 ]; then trap '' TERM; else trap '" + save +
                                  "; exit 0' TERM; fi" + kStay)});
  ASSERT_TRUE(run.WaitForOut("up\nup\n"));
  run.Signal(SIGTERM);
  ASSERT_TRUE(run.WaitForErr("rankrun: rank 1 is saving: waiting up to 1000.0 s\n"));
  pid_t agent = run.Agent();
  ASSERT_TRUE(WaitFor([&] { return WorkersOf(agent).size() == 1; })) << "rank 0 is not awaited";
  Touch("go");
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(run.Out(), HasSubstr("saved"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, OneThatHasSavedIsAwaitedNoLonger) {
  Job run({.arguments =
               Shell({"--shutdown-timeout", "0.1", "--save-timeout", "1000"},
                     "trap '' TERM; echo \"$RANK saving\" > $RANKRUN_SAVE_FIFO; echo up; " +
                         Until("go") + "; echo \"$RANK saved\" > $RANKRUN_SAVE_FIFO" + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGTERM);
  ASSERT_TRUE(run.WaitForErr("rank 0 is saving"));
  Touch("go");
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

TEST_F(EndsTest, AnEndlessSaveEnds) {
  Job run({.arguments =
               Shell({"--shutdown-timeout", "0.1", "--save-timeout", "0.5"},
                     std::string("trap '' TERM; echo 0 saving > $RANKRUN_SAVE_FIFO") + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

TEST_F(EndsTest, AStatusPageSaysItToo) {
  Job run({.arguments = {"--shutdown-timeout", "0.1", "--save-timeout", "0.5", "--no-python",
                         test::Program("zoo"), "saver", "stay"}});
  ASSERT_TRUE(run.WaitForOut("saving"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(run.Err(), HasSubstr("rankrun: rank 0 is saving: waiting up to 0.500 s\n"));
}

TEST_F(EndsTest, NonsenseAboutSavingIsSaidOnce) {
  Job run({.arguments = Shell(
               {"--save-timeout", "1000"},
               "for i in 1 2 3; do echo 1 saving > $RANKRUN_SAVE_FIFO; done; " + Until("go"))});
  ASSERT_TRUE(run.WaitForErr("RANKRUN_SAVE_FIFO: ignored \"1 saving\"; want \"RANK saving\""));
  Touch("go");
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_EQ(run.Err().find("RANKRUN_SAVE_FIFO"), run.Err().rfind("RANKRUN_SAVE_FIFO"));
}

TEST_F(EndsTest, WithoutSaveTimeoutThereIsNoPipe) {
  Job run({.arguments = Shell({}, "echo ${RANKRUN_SAVE_FIFO-none}"),
           .variables = {{"RANKRUN_SAVE_FIFO", "/inherited"}}});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_EQ(run.Out(), "none\n");
}

// --- hung in the kernel

TEST_F(EndsTest, AWorkerThatHangsInTheKernelFailsTheJob) {
  Job run({.arguments = {"-n", "2", "--max-restarts", "3", "--no-python", test::Program("zoo"),
                         "uninterruptible", "stay"},
           .variables = {{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "0.3"}}});
  EXPECT_EQ(run.Wait(), ExitCode(203));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr(" has hung in the kernel for longer than "
                                         "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT allows: pid "),
                               HasSubstr(" (zoo), state D"), HasSubstr("exit code 203\n"),
                               Not(HasSubstr("restart 1 of"))));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, NobodyElseIsStuck) {
  Job run({.arguments = Shell({}, "sleep 0.5"),
           .variables = {{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "0.1"}}});
  EXPECT_EQ(run.Wait(), ExitCode(0)) << run.Err();
}

// --- processes that have opted out

struct KeepTest : EndsTest {
  // Starts a daemon that has opted out and a child that has not, and waits for both.
  std::string Daemon() const {
    return "RANKRUN_KEEP=1 setsid sh -c 'echo $$ > " + folder.Path("pid") + "; : > " +
           folder.Path("kept") + "; exec sleep 1000' & setsid sleep 1000 & " + Until("kept");
  }
  pid_t Kept() const { return std::stoi(ReadText(folder.Path("pid"))); }
  void ExpectOnlyItLives() const {
    EXPECT_TRUE(WaitFor([&] {
      siginfo_t info{};
      while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info.si_pid = 0;
      return ChildrenOf(getpid()) == std::vector{Kept()};
    }));
    EXPECT_EQ(kill(Kept(), SIGKILL), 0);
    EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
  }
  void ExpectItIsNamedAndOnlyItLives(const Job& run) const {
    EXPECT_THAT(run.Err(), HasSubstr("rankrun: left running because of RANKRUN_KEEP: pid " +
                                     std::to_string(Kept()) + " ("));
    EXPECT_EQ(run.Err().find("left running"), run.Err().rfind("left running")) << run.Err();
    ExpectOnlyItLives();
  }
};

TEST_F(KeepTest, ADaemonOutlivesSuccess) {
  Job run({.arguments = Shell({}, Daemon())});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  ExpectItIsNamedAndOnlyItLives(run);
}

TEST_F(KeepTest, ADaemonOutlivesRestarts) {
  Job run({.arguments = Shell({"--max-restarts", "1"},
                              "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then exit 5; fi; " +
                                  Daemon() + "; exit 5")});
  EXPECT_EQ(run.Wait(), ExitCode(5));
  ExpectItIsNamedAndOnlyItLives(run);
}

TEST_F(KeepTest, ADaemonOutlivesTwoSignals) {
  Job run({.arguments = Shell({}, Daemon() + "; trap '' INT" + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGINT);
  ASSERT_TRUE(run.WaitForErr("stopping the workers"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
  ExpectItIsNamedAndOnlyItLives(run);
}

TEST_F(KeepTest, ADaemonOutlivesTheAgent) {
  Job run({.arguments = Shell({}, Daemon() + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  kill(run.Agent(), SIGKILL);
  EXPECT_EQ(run.Wait(), ExitCode(205));
  ExpectItIsNamedAndOnlyItLives(run);
}

TEST_F(KeepTest, ADaemonOutlivesTheGuardian) {
  Job run({.arguments = Shell({}, Daemon() + kStay)});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), KilledBy(SIGKILL));
  ExpectOnlyItLives();
}

TEST_F(KeepTest, OneThatIsOnlyJustForkedIsKept) {
  for (int i = 0; i < 10; ++i) {
    Job run({.arguments = Shell({},
                                "RANKRUN_KEEP=1 setsid sleep 1000 </dev/null >/dev/null 2>&1 "
                                "& echo $! > " +
                                    folder.Path("pid"))});
    EXPECT_EQ(run.Wait(), ExitCode(0));
    ExpectItIsNamedAndOnlyItLives(run);
  }
}

TEST_F(KeepTest, AWorkerCannotOptOut) {
  Job run({.arguments = Shell({}, "echo ${RANKRUN_KEEP-none}; setsid sleep 1000 & exit 0"),
           .variables = {{"RANKRUN_KEEP", "1"}}});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_EQ(run.Out(), "none\n");
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(EndsTest, WorkersAreBetterVictimsWhenMemoryRunsOut) {
  int ours = std::stoi(ReadText("/proc/self/oom_score_adj"));
  Job run({.arguments = Shell({}, "cat /proc/self/oom_score_adj")});
  EXPECT_EQ(run.Wait(), ExitCode(0));
  EXPECT_EQ(run.Out(), std::to_string(std::min(1000, ours + 500)) + "\n");
  EXPECT_EQ(std::stoi(ReadText("/proc/self/oom_score_adj")), ours);
}

// The agent asks the workers' Python for accelerators, which may take a minute.
TEST(EndBeforeTheStartTest, ASignalDoesNotWaitForASlowPython) {
  for (const int number : {SIGINT, SIGTERM}) {
    ScratchFolder folder;
    const std::string asked = folder.Path("asked");
    const std::string python = folder.Script("python3", ": >'" + asked + "'; exec sleep 1000\n");
    Job job({.arguments = {"-n", "auto", folder.Script("train.py", "")},
             .variables = {{"PYTHON_EXEC", python}}});
    ASSERT_TRUE(WaitFor([&] { return access(asked.c_str(), F_OK) == 0; })) << job.Err();
    job.Signal(SIGUSR1);
    job.Signal(number);
    EXPECT_EQ(job.Wait(), KilledBy(number)) << job.Err();
    EXPECT_EQ(job.Err(), "");
  }
}

}  // namespace
}  // namespace rankrun::testing
