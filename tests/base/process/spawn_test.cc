#include "base/process/spawn.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <sstream>

#include "base/status/status_page.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

struct Outcome {
  std::string output;
  ProcessExit exit;
};

// Runs `spec` to its end and captures its standard output.
Outcome RunToEnd(SpawnSpec spec) {
  test::Pipe pipe = test::MakePipe();
  spec.stdout_fd = pipe.write_end.get();
  auto process = SpawnProcess(spec);
  EXPECT_TRUE(process) << process.error().message;
  if (!process) return {};
  pipe.write_end.Reset();
  std::string output = test::ReadToEnd(pipe.read_end.get());
  return {std::move(output), test::WaitForExit(process->pid)};
}

SpawnSpec Spec(const std::string& file, std::vector<std::string> arguments) {
  SpawnSpec spec;
  spec.file = file;
  spec.arguments = std::move(arguments);
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

SpawnSpec Shell(const std::string& script) { return Spec("/bin/sh", {"sh", "-c", script}); }

Outcome RunShell(const std::string& script) { return RunToEnd(Shell(script)); }

// Returns one line of /proc/<child>/status, without its name.
std::string StatusLineOfChild(const std::string& name) {
  Outcome cat = RunToEnd(Spec("/bin/cat", {"cat", "/proc/self/status"}));
  std::istringstream lines(cat.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "no line " + name;
}

constexpr const char* kNoSignals = "0000000000000000";

TEST(SpawnTest, TheExitCodeComesBack) {
  EXPECT_EQ(RunShell("exit 0").exit, (ProcessExit{.signaled = false, .value = 0}));
  EXPECT_EQ(RunShell("exit 37").exit, (ProcessExit{.signaled = false, .value = 37}));
  EXPECT_EQ(RunShell("kill -9 $$").exit, (ProcessExit{.signaled = true, .value = SIGKILL}));
}

TEST(SpawnTest, AnExitReadsAsInAShell) {
  EXPECT_EQ((ProcessExit{.signaled = false, .value = 3}).ShellCode(), 3);
  EXPECT_EQ((ProcessExit{.signaled = true, .value = SIGKILL}).ShellCode(), 137);
  EXPECT_TRUE((ProcessExit{.signaled = false, .value = 0}).succeeded());
  EXPECT_FALSE((ProcessExit{.signaled = false, .value = 1}).succeeded());
  EXPECT_FALSE((ProcessExit{.signaled = true, .value = 0}).succeeded());
}

TEST(SpawnTest, TheEnvironmentIsExactlyTheGivenOne) {
  test::ScopedVariable ours("RANKRUN_TEST_VARIABLE", "not for the child");
  SpawnSpec spec = Spec("/usr/bin/env", {"env", "-0"});
  spec.environment = {"B=2 with blanks", "A=1", "EMPTY=", "LINES=x\ny"};
  EXPECT_EQ(RunToEnd(spec).output, std::string("B=2 with blanks\0A=1\0EMPTY=\0LINES=x\ny\0", 37));
  spec.environment.clear();
  EXPECT_EQ(RunToEnd(spec).output, "");
}

TEST(SpawnTest, TheArgumentsAreExactlyTheGivenOnes) {
  Outcome cat = RunToEnd(Spec("/bin/cat", {"odd name", "--", "/proc/self/cmdline"}));
  EXPECT_EQ(cat.output, std::string("odd name\0--\0/proc/self/cmdline\0", 31));
  EXPECT_EQ(RunShell("printf '%s|' \"$0\" \"$@\"").output, "sh|");
}

TEST(SpawnTest, OnlyTheStandardDescriptorsAreOpen) {
  Fd leaky(open("/dev/null", O_RDONLY));  // deliberately not close-on-exec
  Fd high(fcntl(leaky.get(), F_DUPFD, 500));
  EXPECT_EQ(RunShell("ls /proc/$$/fd; :").output, "0\n1\n2\n");
}

TEST(SpawnTest, TheStatusPageIsAtThree) {
  auto page = StatusPage::Create();
  ASSERT_TRUE(page);
  Fd leaky(fcntl(page->fd(), F_DUPFD, 500));
  SpawnSpec spec = Shell("ls /proc/$$/fd; stat -L -c %i /proc/$$/fd/3");
  spec.status_page_fd = page->fd();
  EXPECT_EQ(RunToEnd(spec).output, "0\n1\n2\n3\n" + std::to_string(page->header().inode) + "\n");
}

TEST(SpawnTest, TheChildReadsItsStandardInput) {
  test::Pipe input = test::MakePipe();
  ASSERT_EQ(write(input.write_end.get(), "typed", 5), 5);
  input.write_end.Reset();
  SpawnSpec spec = Shell("cat");
  spec.stdin_fd = input.read_end.get();
  EXPECT_EQ(RunToEnd(spec).output, "typed");
}

// Runs in a process of its own, whose low descriptors can be rearranged.
TEST(SpawnTest, SourcesMayHaveTheNumbersOfEachOthersTargets) {
  test::Pipe first = test::MakePipe();
  test::Pipe second = test::MakePipe();
  auto page = StatusPage::Create();
  ASSERT_TRUE(page);
  pid_t middle = test::Fork([&] {
    int page_fd = fcntl(page->fd(), F_DUPFD_CLOEXEC, 100);
    int input = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    int first_end = fcntl(first.write_end.get(), F_DUPFD_CLOEXEC, 100);
    int second_end = fcntl(second.write_end.get(), F_DUPFD_CLOEXEC, 100);
    dup2(input, 3);
    dup2(page_fd, 0);
    dup2(first_end, 1);
    dup2(second_end, 2);
    SpawnSpec spec = Shell("readlink /proc/$$/fd/0; echo error >&2; stat -L -c %i /proc/$$/fd/3");
    spec.stdin_fd = 3;
    spec.stdout_fd = 2;
    spec.stderr_fd = 1;
    spec.status_page_fd = 0;
    auto process = SpawnProcess(spec);
    return process ? test::WaitForExit(process->pid).ShellCode() : 99;
  });
  first.write_end.Reset();
  second.write_end.Reset();
  EXPECT_EQ(test::ReadToEnd(second.read_end.get()),
            "/dev/zero\n" + std::to_string(page->header().inode) + "\n");
  EXPECT_EQ(test::ReadToEnd(first.read_end.get()), "error\n");
  EXPECT_EQ(test::WaitForExit(middle), ProcessExit{});
}

TEST(SpawnTest, ThePageMayHaveItsNumberAlready) {
  test::Pipe pipe = test::MakePipe();
  auto page = StatusPage::Create();
  ASSERT_TRUE(page);
  pid_t middle = test::Fork([&] {
    int out = fcntl(pipe.write_end.get(), F_DUPFD_CLOEXEC, 100);
    dup3(page->fd() == 3 ? fcntl(3, F_DUPFD_CLOEXEC, 100) : page->fd(), 3, O_CLOEXEC);
    SpawnSpec spec = Spec("/usr/bin/stat", {"stat", "-L", "-c", "%i", "/proc/self/fd/3"});
    spec.stdout_fd = out;
    spec.stderr_fd = out;
    spec.status_page_fd = 3;
    auto process = SpawnProcess(spec);
    return process ? test::WaitForExit(process->pid).ShellCode() : 99;
  });
  pipe.write_end.Reset();
  EXPECT_EQ(test::ReadToEnd(pipe.read_end.get()), std::to_string(page->header().inode) + "\n");
  EXPECT_EQ(test::WaitForExit(middle), ProcessExit{});
}

TEST(SpawnTest, OneSourceMayServeTwice) {
  test::Pipe pipe = test::MakePipe();
  SpawnSpec spec = Shell("echo out; echo err >&2");
  spec.stdout_fd = pipe.write_end.get();
  spec.stderr_fd = pipe.write_end.get();
  auto process = SpawnProcess(spec);
  ASSERT_TRUE(process);
  pipe.write_end.Reset();
  EXPECT_EQ(test::ReadToEnd(pipe.read_end.get()), "out\nerr\n");
  test::WaitForExit(process->pid);
}

TEST(SpawnTest, AClosedSourceIsAnError) {
  SpawnSpec spec = Spec("/bin/true", {"true"});
  spec.stdout_fd = 987654;
  auto process = SpawnProcess(spec);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().message, "start /bin/true: Bad file descriptor");
  EXPECT_TRUE(test::HasNoChild());
}

TEST(SpawnTest, AFailedExecIsExplainedAndLeavesNothingBehind) {
  auto process = SpawnProcess(Spec("/no/such/program", {"program"}));
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(process.error().message,
            "start /no/such/program: no such file: there is no folder /no");
  EXPECT_TRUE(test::HasNoChild());
}

TEST(SpawnTest, TheChildRunsOnTheGivenCpusOnly) {
  auto allowed = AllowedCpus();
  ASSERT_TRUE(allowed);
  SpawnSpec spec = Spec("/bin/grep", {"grep", "Cpus_allowed_list", "/proc/self/status"});
  spec.cpus = {allowed->back()};
  EXPECT_EQ(RunToEnd(spec).output, "Cpus_allowed_list:\t" + FormatCpus(spec.cpus) + "\n");
  spec.cpus = {};
  EXPECT_EQ(RunToEnd(spec).output, "Cpus_allowed_list:\t" + FormatCpus(*allowed) + "\n");
  EXPECT_EQ(*AllowedCpus(), *allowed) << "the parent's own was changed";
}

TEST(SpawnTest, CpusThatDoNotExistAreAnErrorThatNamesThem) {
  SpawnSpec spec = Spec("/bin/true", {"true"});
  spec.cpus = {8000, 8001};
  auto process = SpawnProcess(spec);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().message, "start /bin/true: bind to CPUs 8000-8001: Invalid argument");
  EXPECT_TRUE(test::HasNoChild());
}

TEST(SpawnTest, BlockedSignalsAreNotInherited) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string blocked = StatusLineOfChild("SigBlk");
  sigset_t still;
  pthread_sigmask(SIG_SETMASK, &before, &still);
  EXPECT_EQ(blocked, kNoSignals);
  EXPECT_TRUE(sigismember(&still, SIGUSR1)) << "the parent's own mask was changed";
}

TEST(SpawnTest, IgnoredSignalsAreNotInherited) {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGCHLD) signal(number, SIG_IGN);  // an ignored SIGCHLD would reap the child
  }
  std::string ignored = StatusLineOfChild("SigIgn");
  struct sigaction ours;
  sigaction(SIGUSR1, nullptr, &ours);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  EXPECT_EQ(ignored, kNoSignals);
  EXPECT_EQ(ours.sa_handler, SIG_IGN) << "the parent's own disposition was changed";
}

TEST(SpawnTest, TheChildHasASessionAndAGroupOfItsOwn) {
  Outcome cat = RunToEnd(Spec("/bin/cat", {"cat", "/proc/self/stat"}));
  std::istringstream fields(cat.output.substr(cat.output.rfind(')') + 1));
  std::string state;
  pid_t parent = 0, group = 0, session = 0;
  fields >> state >> parent >> group >> session;
  EXPECT_EQ(parent, getpid());
  EXPECT_EQ(group, std::stoi(cat.output));
  EXPECT_EQ(session, group);
  EXPECT_NE(session, getsid(0));
}

TEST(SpawnTest, TheSoftLimitOfOpenFilesIsTheGivenOne) {
  SpawnSpec spec = Shell("ulimit -Sn; ulimit -Hn");
  spec.open_files = 123;
  rlimit ours;
  getrlimit(RLIMIT_NOFILE, &ours);
  std::string hard = std::to_string(ours.rlim_max) + "\n";
  EXPECT_EQ(RunToEnd(spec).output, "123\n" + hard);
  spec.open_files.reset();
  EXPECT_EQ(RunToEnd(spec).output, std::to_string(ours.rlim_cur) + "\n" + hard);
}

TEST(SpawnTest, TheSoftLimitOfACoreFileIsTheGivenOne) {
  SpawnSpec spec = Shell("ulimit -Sc");
  spec.core_bytes = 512;
  EXPECT_EQ(RunToEnd(spec).output, "1\n");
}

TEST(SpawnTest, TheChildOfAKilledProcessDies) {
  test::Pipe pipe = test::MakePipe();
  pid_t parent = test::Fork([&] {
    SpawnSpec spec = Shell("echo up; exec sleep 1000");
    spec.stdout_fd = pipe.write_end.get();
    auto process = SpawnProcess(spec);
    if (process) pause();
    return 1;
  });
  pipe.write_end.Reset();
  char text[3];
  ASSERT_EQ(read(pipe.read_end.get(), text, 3), 3);
  kill(parent, SIGKILL);
  test::WaitForExit(parent);
  // The pipe ends when the last process that holds it has ended.
  pollfd wait{pipe.read_end.get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 10'000), 1) << "the child lives on";
  EXPECT_EQ(test::ReadToEnd(pipe.read_end.get()), "");
}

TEST(SpawnTest, TheHandleIsReadyAtTheEndAndReapsOnce) {
  test::Pipe input = test::MakePipe();
  SpawnSpec spec = Spec("/bin/cat", {"cat"});
  spec.stdin_fd = input.read_end.get();
  auto process = SpawnProcess(spec);
  ASSERT_TRUE(process);
  EXPECT_EQ(fcntl(process->handle.fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(process->handle.Reap());
  EXPECT_FALSE(ReapByPid(process->pid));
  input.write_end.Reset();
  ASSERT_TRUE(process->handle.AwaitEnd(std::chrono::steady_clock::now() + test::kLong));
  EXPECT_EQ(process->handle.Reap(), ProcessExit{});
  EXPECT_FALSE(process->handle.Reap());
  EXPECT_TRUE(test::HasNoChild());
}

}  // namespace
}  // namespace rankrun
