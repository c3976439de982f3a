// No process is left, whichever process of a job dies, at any time.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A worker with a child in its process group and a child in another session.
constexpr const char* kFamily = "sleep 1000 & setsid sleep 1000 & echo up; wait";

char StateOf(pid_t pid) {
  std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() ? '?' : stat[stat.rfind(')') + 2];
}

long ResidentKilobytes(pid_t pid) {
  std::string status = ReadText("/proc/" + std::to_string(pid) + "/status");
  size_t at = status.find("VmRSS:");
  return at == std::string::npos ? 0L : std::strtol(status.c_str() + at + 6, nullptr, 10);
}

struct SupervisionTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }
};

TEST_F(SupervisionTest, NothingIsLeftAfterSuccess) {
  Job run({.arguments = Shell({"-n", "2"}, "setsid sleep 1000 & exit 0")});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SupervisionTest, DescendantsThatIgnoreTermAreKilled) {
  Job run({.arguments = Shell({},
                              "setsid sh -c \"trap '' TERM; echo up; sleep 1000; "
                              "sleep 1000\" & while ! read x; do :; done; exit 0"),
           .stdin_text = "go\n"});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SupervisionTest, GrandchildWithOpenStderrHoldsNothingUp) {
  Job run({.arguments = Shell({}, "setsid sleep 1000 & exit 7")});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 7}));
}

TEST_F(SupervisionTest, StubbornWorkersAreKilledAfterTheTimeout) {
  Job run({.arguments = Shell({"-n", "2", "--shutdown-timeout", "0.2"},
                              "trap '' TERM INT; echo up; while :; do sleep 0.01; done")});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SupervisionTest, SecondSignalKillsAtOnce) {
  Job run({.arguments = Shell({"-n", "2", "--shutdown-timeout", "1000"},
                              "trap '' TERM INT; echo up; while :; do sleep 0.01; done")});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  run.Signal(SIGINT);
  ASSERT_TRUE(run.WaitForErr("stopping the workers"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SupervisionTest, OneSignalToEverybodyIsOneRequest) {
  Job run({.arguments = Shell({"--shutdown-timeout", "1000"},
                              "trap 'echo term; sleep 0.3; echo saved; exit 0' TERM; "
                              "echo up; while :; do sleep 0.01; done")});
  ASSERT_TRUE(run.WaitForOut("up"));
  kill(run.Agent(), SIGTERM);
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(run.Out(), HasSubstr("saved"));
}

// timeout(1) sends the signal to its child and then to the whole process group.
TEST_F(SupervisionTest, TimeoutIsOneRequest) {
  std::string rankrun = test::Program("rankrun");
  Job run({.arguments = {"0.5", rankrun, "--no-python", "/bin/sh", "-c",
                         "trap 'sleep 0.1; echo saved; exit 0' TERM; while :; do sleep 0.01; done"},
           .program = "/usr/bin/timeout"});
  ASSERT_TRUE(run.Wait().has_value());
  EXPECT_EQ(run.Out(), "saved\n");
}

TEST_F(SupervisionTest, WorkerThatTakesAllConnectionsTakesNotTheLastDescriptors) {
  Job run({.arguments = Shell({"-n", "2"},
                              "exec bash -c 'for i in {1..60}; do "
                              "exec {fd}<>/dev/tcp/127.0.0.1/$MASTER_PORT; done; echo up; "
                              "exec sleep 1000'"),
           .in_child = [] {
             rlimit few{64, 64};
             setrlimit(RLIMIT_NOFILE, &few);
           }});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  run.Signal(SIGKILL);
  ASSERT_TRUE(run.Wait().has_value());
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
}

TEST_F(SupervisionTest, WorkersThatWaitForDescriptorsAreOneLine) {
#ifdef RANKRUN_SANITIZED_ADDRESS
  GTEST_SKIP() << "without descriptors its checks of objects, which make pipes, find faults";
#endif
  // These workers need more descriptors than are free before the first ones end: workers that
  // prepare together leave none for a start.
  auto began = std::chrono::steady_clock::now();
  Job run({.arguments = Shell({"-n", "24"}, "exec sleep 0.1"), .in_child = [] {
             rlimit few{80, 80};
             setrlimit(RLIMIT_NOFILE, &few);
           }});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0})) << run.Err();
  EXPECT_THAT(run.Err(), ContainsRegex("[0-9]+ workers wait: .*Too many open files; trying again"));
  // One line for all waiting workers each second, however long the job takes.
  auto took = std::chrono::steady_clock::now() - began;
  EXPECT_LE(Count(run.Err(), "trying again"), took / std::chrono::seconds(1) + 1) << run.Err();
}

// The agent asks the workers' Python for accelerators before it starts them.
TEST_F(SupervisionTest, CtrlZBeforeTheStartHolds) {
  ScratchFolder folder;
  const std::string asked = folder.Path("asked"), go = folder.Path("go");
  const std::string python = folder.Script(
      "python3", "[ -z \"$RANK\" ] || exec sleep 1000\n: >'" + asked + "'; while ! [ -e '" + go +
                     "' ]; do sleep 0.01; done; echo; echo rankrun none 0\n");
  Job run({.arguments = {"-n", "auto", folder.Script("train.py", "")},
           .variables = {{"PYTHON_EXEC", python}}});
  ASSERT_TRUE(WaitFor([&] { return access(asked.c_str(), F_OK) == 0; })) << run.Err();
  run.Signal(SIGTSTP);
  ASSERT_TRUE(WaitFor([&] { return StateOf(run.pid()) == 'T'; }));
  folder.Script("go", "");
  EXPECT_TRUE(WaitFor([&] {
    const std::vector<pid_t> workers = WorkersOf(run.Agent());
    return !workers.empty() &&
           std::ranges::all_of(workers, [](pid_t worker) { return StateOf(worker) == 'T'; });
  })) << run.Err();
  run.Signal(SIGCONT);
}

TEST_F(SupervisionTest, StartsAfterCtrlZWaitForTheContinuation) {
  Job run({.arguments = Shell({"--max-restarts", "1"},
                              "echo up $TORCHELASTIC_RESTART_COUNT; exec sleep 1000")});
  ASSERT_TRUE(run.WaitForOut("up 0"));
  pid_t worker = run.Workers(1)[0];
  run.Signal(SIGTSTP);
  ASSERT_TRUE(WaitFor([&] { return StateOf(run.pid()) == 'T'; }));
  kill(worker, SIGKILL);
  ASSERT_TRUE(WaitFor([&] {
    std::vector<pid_t> workers = WorkersOf(run.Agent());
    return workers.size() == 1 && workers[0] != worker && StateOf(workers[0]) == 'T';
  }));
  run.Signal(SIGCONT);
  EXPECT_TRUE(run.WaitForOut("up 1"));
}

TEST_F(SupervisionTest, FailureBeforeTheSignalIsStillReported) {
  ScratchFolder folder;  // `ready`: rank 0 has its trap, and rank 1 fails
  std::string ready = folder.Path("ready");
  Job run({.arguments = Shell({"-n", "2", "--shutdown-timeout", "1000"},
                              "if [ $RANK = 1 ]; then until [ -e " + ready +
                                  " ]; do sleep 0.01; done; exit 9; fi; "
                                  "trap 'echo term' TERM; : > " +
                                  ready + "; while :; do sleep 0.01; done")});
  ASSERT_TRUE(run.WaitForOut("term"));
  run.Signal(SIGINT);
  ASSERT_TRUE(run.WaitForErr("stopping the workers"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
  EXPECT_THAT(run.Err(), HasSubstr("cause: rank 1"));
}

TEST_F(SupervisionTest, IgnoredHangUpStaysIgnored) {
  Job run({.arguments = Shell({}, "echo up; read x; exec sleep 1000"),
           .in_child = [] { signal(SIGHUP, SIG_IGN); }});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGHUP);
  kill(run.Agent(), SIGHUP);
  run.Signal(SIGTERM);  // a HUP that was not ignored would be the cause
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

TEST_F(SupervisionTest, StopAndContinueReachTheWorkers) {
  Job run({.arguments = Shell({}, "echo up; exec sleep 1000")});
  ASSERT_TRUE(run.WaitForOut("up"));
  pid_t worker = run.Workers(1)[0];
  run.Signal(SIGTSTP);
  EXPECT_TRUE(WaitFor([&] { return StateOf(worker) == 'T' && StateOf(run.pid()) == 'T'; }));
  run.Signal(SIGCONT);
  EXPECT_TRUE(WaitFor([&] { return StateOf(worker) == 'S' && StateOf(run.pid()) == 'S'; }));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

// No shell would continue a stopped job.
TEST_F(SupervisionTest, CtrlZDoesNothingWhereThereIsNoShell) {
  Job run({.arguments = Shell({},
                              "trap 'echo continued' CONT; echo up; "
                              "while :; do sleep 0.01; done"),
           .orphaned = true});
  ASSERT_TRUE(run.WaitForOut("up"));
  // The agent may not have registered the worker yet at the first signal.
  EXPECT_TRUE(WaitFor([&] {
    run.Signal(SIGTSTP);
    return Count(run.Out(), "continued") > 0;
  }));
  EXPECT_NE(StateOf(run.pid()), 'T');
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

TEST_F(SupervisionTest, DeathOfTheAgentEndsTheJobWithOneSentence) {
  Job run({.arguments = Shell({"-n", "2"}, kFamily)});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  kill(run.Agent(), SIGKILL);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 205}));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("was killed by SIGKILL in the middle of the job"),
                               HasSubstr("nothing of the job is left")));
  EXPECT_EQ(Count(run.Err(), "\n"), 1);
}

TEST_F(SupervisionTest, DeathOfTheGuardianEndsEverything) {
  Job run({.arguments = Shell({"-n", "2"}, kFamily)});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), KilledBy(SIGKILL));
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
}

// A stopped agent does not notice the death of its guardian.
TEST_F(SupervisionTest, DeathOfTheGuardianEndsAStoppedAgentToo) {
  Job run({.arguments = Shell({"-n", "2"}, kFamily)});
  ASSERT_TRUE(WaitFor([&] { return Count(run.Out(), "up") == 2; }));
  pid_t agent = run.Agent();
  kill(agent, SIGSTOP);
  std::string stat = "/proc/" + std::to_string(agent) + "/stat";
  ASSERT_TRUE(WaitFor([&] { return ReadText(stat).find(") T ") != std::string::npos; }));
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), KilledBy(SIGKILL));
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
}

TEST_F(SupervisionTest, ChildrenOfTheShellThatBecameRankrunAreNotTouched) {
  ScratchFolder folder;
  std::string script =
      folder.Script("innocent.sh", "sleep 1000 & echo $! > " + folder.Path("pid") + "\nexec " +
                                       test::Program("rankrun") +
                                       " --no-python /bin/sh -c 'echo up; exec sleep 1000'");
  Job run({.program = script});
  ASSERT_TRUE(run.WaitForOut("up"));
  pid_t innocent = std::stoi(ReadText(folder.Path("pid")));
  for (pid_t child : ChildrenOf(run.pid())) {
    if (child != innocent) kill(child, SIGKILL);
  }
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 205}));
  EXPECT_FALSE(NothingIsLeft(milliseconds(0))) << "the innocent one lives";
  EXPECT_EQ(kill(innocent, SIGKILL), 0);
  EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
}

// Checks the invariant at random moments. RANKRUN_RANDOM_RUNS: number of runs.
TEST_F(SupervisionTest, WhoeverIsKilledWheneverNothingIsLeft) {
  const char* wanted = std::getenv("RANKRUN_RANDOM_RUNS");
  int runs = wanted != nullptr ? std::atoi(wanted) : 50;
  unsigned seed = 20240117;
  for (int i = 0; i < runs; ++i, ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Job run({.arguments = Shell({"-n", "3", "--max-restarts", "1000"}, kFamily)});
    auto moment = std::chrono::microseconds(random() % 40'000);
    std::this_thread::sleep_for(moment);
    int victim = static_cast<int>(random() % 3);
    pid_t agent = 0;
    if (auto children = ChildrenOf(run.pid()); !children.empty()) agent = children[0];
    std::vector<pid_t> workers = agent == 0 ? std::vector<pid_t>() : WorkersOf(agent);
    if (victim == 0) run.Signal(SIGKILL);
    if (victim == 1 && agent != 0) {
      kill(agent, SIGKILL);  // ends the job, or starts the next incarnation
      ASSERT_TRUE(run.WaitForErr("was killed by SIGKILL")) << run.Err();
      run.Signal(SIGKILL);
    }
    if (victim == 2 && !workers.empty()) {
      kill(workers[random() % workers.size()], SIGKILL);
      ASSERT_TRUE(run.WaitForErr("next: restart 1 of 1000")) << run.Err();
      run.Signal(SIGKILL);
    }
    if (victim != 0 && (victim == 2 ? workers.empty() : agent == 0)) run.Signal(SIGKILL);
    ASSERT_TRUE(run.Wait().has_value());
    ASSERT_TRUE(NothingIsLeft(milliseconds(1'000)));
  }
}

TEST_F(SupervisionTest, ClosedStandardErrorHarmsNothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  reader.Reset();
  Job run(
      {.arguments = Shell({"-n", "2"}, "seq 1 50000 >&2; echo done"), .stderr_fd = writer.get()});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_EQ(Count(run.Out(), "done"), 2);
}

TEST_F(SupervisionTest, SlowTerminalHoldsBackTheWriterNotMemory) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  Job run({.arguments = Shell({}, "head -c 200000000 /dev/zero | tr '\\0' '\\n' >&2; echo done"),
           .stderr_fd = writer.get()});
  writer.Reset();
  pid_t agent = run.Agent();
  auto kilobytes = [agent] { return ResidentKilobytes(agent); };
  // Once the queue in the agent is full, its memory does not grow any more.
  long last = 0;
  ASSERT_TRUE(WaitFor([&] { return std::exchange(last, kilobytes()) == kilobytes() && last > 0; }));
  EXPECT_LT(kilobytes(), 200'000);
  std::vector<char> buffer(1 << 20);
  size_t total = 0;
  for (ssize_t count; (count = read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    total += static_cast<size_t>(count);
  }
  EXPECT_EQ(total, 200'000'000U);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 0}));
}

// Some workers write before the last one has been started.
TEST_F(SupervisionTest, StuckTerminalHoldsBackAllWritersAndNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  Job run(
      {.arguments = Shell({"-n", "8"}, "trap '' INT; yes spam >&2"), .stderr_fd = writer.get()});
  writer.Reset();
  ASSERT_EQ(run.Workers(8).size(), 8U);
  long last = 0;
  ASSERT_TRUE(WaitFor([&] {
    long now = ResidentKilobytes(run.Agent());
    return std::exchange(last, now) == now && now > 0;
  }));
  EXPECT_LT(last, 200'000);
  run.Signal(SIGINT);
  run.Signal(SIGTERM);  // the second request discards output for the terminal
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

}  // namespace
}  // namespace rankrun::testing
