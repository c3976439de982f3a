// Jobs that this program starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <future>

#include <rankrun/launch.h>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

LaunchSpec Shell(const std::string& script, int workers = 1) {
  return {.program = {"/bin/sh", "-c", script},
          .workers = workers,
          .flags = {"--no-python", "--prefix=none"}};
}

// Returns the message that `launch` throws.
template <typename E>
std::string Thrown(const std::function<void()>& launch) {
  try {
    launch();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing thrown";
}

struct LaunchTest : testing::Test {
  LaunchTest() {
    output.Reset(open(folder.Path("out").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    errors.Reset(open(folder.Path("err").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  }
  // Redirects the output to files.
  LaunchSpec Captured(LaunchSpec spec) const {
    spec.stdout_fd = output.get();
    spec.stderr_fd = errors.get();
    return spec;
  }
  std::string Out() const { return test::ReadWholeFile(folder.Path("out")); }
  std::string Err() const { return test::ReadWholeFile(folder.Path("err")); }
  bool WaitForOut(const std::string& text) const {
    return test::WaitFor([&] { return Out().find(text) != std::string::npos; });
  }

  test::TempFolder folder;
  Fd output;
  Fd errors;
};

TEST_F(LaunchTest, ASuccessHasEachRanksEnd) {
  LaunchResult result = Launch(Captured(Shell("echo $RANK of $WORLD_SIZE", 3)));
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.why, "all workers succeeded");
  EXPECT_EQ(result.report, "");
  ASSERT_EQ(result.workers.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const WorkerEnd& worker = result.workers[static_cast<size_t>(rank)];
    EXPECT_EQ(worker.global_rank, rank);
    EXPECT_TRUE(worker.succeeded());
    EXPECT_GT(worker.pid, 0);
  }
  EXPECT_THAT(Out(), HasSubstr("2 of 3\n"));
  EXPECT_THAT(result.events, HasSubstr("job_ended"));
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(LaunchTest, AFailureNamesTheRankAndItsException) {
  LaunchResult result = Launch(
      Captured(Shell("test $RANK = 2 || exec sleep 1000; "
                     "echo '{\"message\": \"ValueError: no\"}' >$TORCHELASTIC_ERROR_FILE; exit 7",
                     4)));
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.cause, 2);
  EXPECT_EQ(result.why, "rank 2 failed: exit code 7");
  EXPECT_THAT(Err(), testing::HasSubstr(result.report + "rankrun: files of the workers are in /"));
  ASSERT_EQ(result.workers.size(), 4u);
  EXPECT_EQ(result.workers[2].exit_code, 7);
  EXPECT_EQ(result.workers[2].exception, "ValueError: no");
  EXPECT_EQ(result.workers[0].signal, SIGTERM);
  EXPECT_TRUE(result.workers[0].sent_by_rankrun);
}

TEST_F(LaunchTest, RestartsAreCounted) {
  LaunchSpec spec = Captured(Shell("test $TORCHELASTIC_RESTART_COUNT = 2 || exit 5"));
  spec.max_restarts = 3;
  LaunchResult result = Launch(spec);
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.restarts, 2);
  EXPECT_THAT(result.report, HasSubstr("attempt 1 failed"));
}

TEST_F(LaunchTest, ADeathBySignalIsOne) {
  LaunchResult result = Launch(Captured(Shell("kill -KILL $$")));
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.signal, std::nullopt) << "rankrun itself exited";
  ASSERT_EQ(result.workers.size(), 1u);
  EXPECT_EQ(result.workers[0].signal, SIGKILL);
  EXPECT_FALSE(result.workers[0].sent_by_rankrun);
}

TEST_F(LaunchTest, EnvironmentAndFolderAreTheSpecs) {
  test::ScopedVariable both("LAUNCH_TEST_A", "callers");
  test::ScopedVariable kept("LAUNCH_TEST_B", "kept");
  LaunchSpec spec = Captured(Shell("echo $LAUNCH_TEST_A $LAUNCH_TEST_B; pwd -P"));
  spec.environment = {{"LAUNCH_TEST_A", "specs"}};
  spec.directory = folder.path();
  EXPECT_TRUE(Launch(spec).succeeded());
  EXPECT_EQ(Out(), "specs kept\n" + std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST_F(LaunchTest, WorkersInheritNothingButTheStandardDescriptors) {
  Fd leaky(open("/dev/null", O_RDONLY));  // not close-on-exec
  EXPECT_TRUE(
      Launch(Captured(Shell("for fd in /proc/$$/fd/*; do echo ${fd##*/}; done"))).succeeded());
  EXPECT_THAT(Out(), testing::StartsWith("0\n1\n2\n3\n")) << "3: the status page";
  EXPECT_EQ(Out().find("\n" + std::to_string(leaky.get()) + "\n") != std::string::npos,
            leaky.get() == 3);
}

TEST_F(LaunchTest, StandardInputIsTheSpecs) {
  Fd in(open(folder.Write("in", "words\n").c_str(), O_RDONLY | O_CLOEXEC));
  LaunchSpec spec = Captured(Shell("cat"));
  spec.stdin_fd = in.get();
  EXPECT_TRUE(Launch(spec).succeeded());
  EXPECT_EQ(Out(), "words\n");
}

TEST_F(LaunchTest, OutputMayBeSwapped) {
  LaunchSpec spec = Captured(Shell("echo out; echo err >&2"));
  std::swap(spec.stdout_fd, spec.stderr_fd);
  EXPECT_TRUE(Launch(spec).succeeded());
  EXPECT_EQ(Out(), "err\n");
  EXPECT_EQ(Err(), "out\n");
}

TEST_F(LaunchTest, WrongSettingsAreThrownBeforeAnythingStarts) {
  LaunchSpec spec = Captured(Shell("exit 0"));
  spec.executable = "/no/such/rankrun";
  EXPECT_EQ(Thrown<DistError>([&] { Launch(spec); }),
            "LaunchSpec::executable is /no/such/rankrun: no such executable file");
  spec.executable.clear();
  spec.directory = "/no/such/folder";
  EXPECT_EQ(Thrown<DistError>([&] { Launch(spec); }),
            "LaunchSpec::directory is /no/such/folder: no folder");
  spec.directory.clear();
  spec.stdout_fd = 777;
  EXPECT_EQ(Thrown<DistError>([&] { Launch(spec); }),
            "LaunchSpec::stdout_fd is 777: not an open descriptor");
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(LaunchTest, AFileThatIsNoProgramCannotBeStarted) {
  LaunchSpec spec = Captured(Shell("exit 0"));
  spec.executable = folder.Write("rankrun", std::string("\x7f\x45LF nonsense", 13), 0755);
  EXPECT_THAT(Thrown<DistBackendError>([&] { Launch(spec); }),
              HasSubstr("start " + spec.executable + ": "));
  EXPECT_TRUE(test::HasNoChild());
}

// Tries each limit of descriptors at which one of the steps fails, until none
// does.
TEST_F(LaunchTest, WithoutDescriptorsNothingIsLeftBehind) {
#ifdef RANKRUN_SANITIZED_ADDRESS
  GTEST_SKIP() << "UndefinedBehaviorSanitizer itself needs descriptors";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  constexpr int kUsed = 64;
  std::vector<Fd> used;  // all descriptors below kUsed
  do {
    used.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (used.back().get() < kUsed - 1);
  std::vector<std::string> told{""};
  for (rlim_t spare = 0; spare < 20 && told.back() != "nothing thrown"; ++spare) {
    rlimit few{.rlim_cur = kUsed + spare, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    told.push_back(Thrown<DistBackendError>([&] { StartLaunch(Captured(Shell("exit 0"))); }));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(test::HasNoChild()) << told.back();
  }
  EXPECT_THAT(told, testing::Contains(StartsWith("launch: watch rankrun: ")));
  EXPECT_EQ(told.back(), "nothing thrown");
}

TEST_F(LaunchTest, ARefusalOfRankrunIsThrown) {
  LaunchSpec spec = Captured({.program = {"no-such-program-here"}});
  EXPECT_THAT(Thrown<DistError>([&] { Launch(spec); }),
              HasSubstr("rankrun has refused the job: no-such-program-here: no such file"));
  spec = Captured(Shell("exit 0"));
  spec.flags = {"--no-such-flag"};
  EXPECT_THAT(Thrown<DistError>([&] { Launch(spec); }), HasSubstr("exit code 2"));
  EXPECT_THAT(Err(), HasSubstr("unknown flag --no-such-flag"));
}

TEST_F(LaunchTest, AnotherThreadMayStopIt) {
  LaunchHandle job = StartLaunch(Captured(Shell("echo up; exec sleep 1000", 2)));
  auto result = std::async(std::launch::async, [&] { return job.Wait(); });
  ASSERT_TRUE(WaitForOut("up\nup\n"));
  EXPECT_EQ(result.wait_for(milliseconds(0)), std::future_status::timeout);
  job.Stop();
  EXPECT_EQ(result.get().signal, SIGTERM);
  job.Stop();  // does nothing
  EXPECT_EQ(job.Wait().exit_code, 143);
}

TEST_F(LaunchTest, AWaitMayEndBeforeTheJob) {
  LaunchHandle job = StartLaunch(Captured(Shell("echo up; exec sleep 1000")));
  ASSERT_TRUE(WaitForOut("up"));
  EXPECT_EQ(job.WaitFor(milliseconds(10)), std::nullopt);
  kill(job.pid(), SIGTERM);
  auto result = job.WaitFor(test::kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGTERM);
}

TEST_F(LaunchTest, AWaitWithoutALimitWaits) {
  LaunchHandle job = StartLaunch(Captured(Shell("exit 4")));
  auto result = job.WaitFor(milliseconds::max());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 4);
}

TEST_F(LaunchTest, AnAbandonedJobMaySave) {
  LaunchSpec spec = Captured(
      Shell("trap 'echo asked; until test -e " + folder.Path("go") +
            "; do sleep 0.01; done; echo saved; exit 0' TERM; "
            "echo \"$RANK saving\" >$RANKRUN_SAVE_FIFO; echo up; while :; do sleep 0.01; done"));
  spec.shutdown_timeout = milliseconds(100);
  spec.save_timeout = milliseconds::max();
  LaunchHandle job = StartLaunch(spec);
  ASSERT_TRUE(WaitForOut("up"));
  auto ended = std::async(std::launch::async, [&] { LaunchHandle ends(std::move(job)); });
  EXPECT_TRUE(WaitForOut("asked"));
  folder.Write("go", "");
  ended.get();
  EXPECT_THAT(Out(), HasSubstr("saved"));
}

TEST_F(LaunchTest, AnAbandonedJobIsStopped) {
  pid_t pid;
  {
    LaunchHandle job = StartLaunch(Captured(Shell("echo up; exec sleep 1000")));
    ASSERT_TRUE(WaitForOut("up"));
    LaunchHandle moved = std::move(job);
    pid = moved.pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(LaunchTest, AnAssignedHandleEndsTheJobThatItHad) {
  LaunchHandle job = StartLaunch(Captured(Shell("exec sleep 1000")));
  pid_t first = job.pid();
  job = StartLaunch(Captured(Shell("exit 4")));
  EXPECT_EQ(kill(first, 0), -1);
  EXPECT_EQ(job.Wait().exit_code, 4);
}

// SIGKILL ends the caller, so that it cannot signal rankrun any more.
TEST_F(LaunchTest, AJobEndsWithItsCaller) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t caller = fork();
  if (caller == 0) {
    LaunchHandle job = StartLaunch(Captured(Shell("echo up; exec sleep 1000")));
    for (;;) pause();
  }
  ASSERT_TRUE(WaitForOut("up"));
  kill(caller, SIGKILL);
  EXPECT_TRUE(test::WaitFor([] {
    siginfo_t info{};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info.si_pid = 0;
    return test::HasNoChild();
  }));
  EXPECT_THAT(Err(), HasSubstr("the program that started this job has ended"));
}

TEST_F(LaunchTest, SignalsOfTheCallerStayAsTheyWere) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  signal(SIGPIPE, SIG_IGN);
  LaunchHandle job = StartLaunch(Captured(Shell("echo up; exec sleep 1000")));
  ASSERT_TRUE(WaitForOut("up"));
  job.Stop();
  EXPECT_EQ(job.Wait().signal, SIGTERM) << "rankrun sees it, though it is blocked here";
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGTERM), 1);
  EXPECT_EQ(sigismember(&now, SIGINT), 0);
  EXPECT_EQ(signal(SIGPIPE, SIG_DFL), SIG_IGN);
  EXPECT_EQ(signal(SIGCHLD, SIG_DFL), SIG_DFL);
}

// A program may reap all its children, including rankrun.
TEST_F(LaunchTest, AnEndThatWasStolenIsKnownFromTheEvents) {
  signal(SIGCHLD, SIG_IGN);
  LaunchResult result = Launch(Captured(Shell("exit 6")));
  signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(result.exit_code, 6);
}

TEST_F(LaunchTest, OtherChildrenAreNotWaitedFor) {
  pid_t child = fork();
  if (child == 0) _exit(3);
  EXPECT_TRUE(Launch(Captured(Shell("exit 0"))).succeeded());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(LaunchTest, ThisProgramCanBeItsOwnWorker) {
  LaunchSpec spec = Captured(OwnProgram({"--gtest_list_tests", "--gtest_filter=LaunchTest.This*"}));
  spec.workers = 2;
  EXPECT_TRUE(Launch(spec).succeeded());
  size_t first = Out().find("ThisProgramCanBeItsOwnWorker");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(Out().find("ThisProgramCanBeItsOwnWorker", first + 1), std::string::npos);
}

}  // namespace
}  // namespace rankrun
