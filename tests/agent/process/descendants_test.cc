#include "agent/process/descendants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process/process_handle.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using testing::UnorderedElementsAreArray;

// Processes of a tree report their pids through a pipe.
struct DescendantsTest : testing::Test {
  DescendantsTest() { BecomeSubreaper(); }
  ~DescendantsTest() override { KillDescendants({}); }

  void ReportPid() {
    pid_t self = getpid();
    if (write(pipe.write_end.get(), &self, sizeof self) != sizeof self) _exit(1);
  }
  // Returns the next `count` reported pids.
  std::vector<pid_t> NextPids(size_t count) {
    std::vector<pid_t> pids(count);
    for (pid_t& pid : pids) EXPECT_EQ(read(pipe.read_end.get(), &pid, sizeof pid), 4);
    return pids;
  }
  int Live() {
    ReportPid();
    for (;;) pause();
  }

  // Starts a child, a grandchild and its child, the first two in sessions of
  // their own.
  pid_t StartTree() {
    return test::Fork([this] {
      setsid();
      test::Fork([this] {
        setsid();
        test::Fork([this] { return Live(); });
        return Live();
      });
      return Live();
    });
  }

  test::Pipe pipe = test::MakePipe();
};

TEST_F(DescendantsTest, NoChildIsNone) {
  EXPECT_FALSE(HasChildren());
  EXPECT_TRUE(Children().empty());
  EXPECT_TRUE(Descendants().empty());
  EXPECT_EQ(KillDescendants({}), 0);
}

TEST_F(DescendantsTest, FindsTheWholeTreeParentsFirst) {
  pid_t root = StartTree();
  std::vector<pid_t> tree = NextPids(3);
  EXPECT_TRUE(HasChildren());
  EXPECT_EQ(Children(), std::vector{root});
  std::vector<pid_t> found = Descendants();
  EXPECT_THAT(found, UnorderedElementsAreArray(tree));
  EXPECT_EQ(found[0], root);
}

TEST_F(DescendantsTest, FindsChildrenOfOtherThreads) {
  std::vector<pid_t> pids;
  std::thread([&] {
    test::Fork([this] { return Live(); });
    pids = NextPids(1);
  }).join();
  EXPECT_EQ(Children(), pids);
}

TEST_F(DescendantsTest, AdoptsOrphans) {
  pid_t root = StartTree();
  std::vector<pid_t> tree = NextPids(3);
  kill(root, SIGKILL);
  EXPECT_EQ(test::WaitForExit(root).value, SIGKILL);
  std::erase(tree, root);
  EXPECT_THAT(Descendants(), UnorderedElementsAreArray(tree));
  EXPECT_EQ(Children().size(), 1u);
}

TEST_F(DescendantsTest, AZombieIsAChildUntilItIsReaped) {
  pid_t child = test::Fork([] { return 0; });
  ASSERT_TRUE(test::WaitFor([&] { return !test::IsRunning(child); }));
  EXPECT_TRUE(HasChildren());
  EXPECT_EQ(Children(), std::vector{child});
  test::WaitForExit(child);
  EXPECT_FALSE(HasChildren());
}

// The child blocks the signal, so that the kernel shows whether it was sent.
TEST_F(DescendantsTest, OnlyProcessesBelowAreSignaled) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  pid_t child = test::Fork([this] { return Live(); });
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  NextPids(1);
  auto was_sent = [&] {
    std::string status = ReadOfProcess(child, "status");
    return status.find("ShdPnd:\t0000000000000000\n") == std::string::npos;
  };
  // The sibling stands for a process that has taken over the pid of a descendant.
  pid_t signaller = test::Fork([&] { return SignalDescendant(child, SIGUSR1) ? 0 : 1; });
  EXPECT_EQ(test::WaitForExit(signaller).value, 0);
  EXPECT_FALSE(was_sent());
  EXPECT_TRUE(SignalDescendant(child, SIGUSR1));
  EXPECT_TRUE(was_sent());
  EXPECT_TRUE(SignalDescendant(child, SIGKILL));
  EXPECT_EQ(test::WaitForExit(child).value, SIGKILL);
  EXPECT_TRUE(SignalDescendant(child, SIGKILL)) << "nobody has this pid";
}

TEST_F(DescendantsTest, KillLeavesNothing) {
  for (int i = 0; i < 3; ++i) StartTree();
  std::vector<pid_t> trees = NextPids(9);
  EXPECT_EQ(KillDescendants({}), 9);
  EXPECT_TRUE(test::HasNoChild());
  for (pid_t pid : trees) EXPECT_NE(kill(pid, 0), 0) << pid;
}

TEST_F(DescendantsTest, KillReachesStoppedProcesses) {
  pid_t root = StartTree();
  for (pid_t pid : NextPids(3)) kill(pid, SIGSTOP);
  EXPECT_EQ(KillDescendants({}), 3);
  EXPECT_NE(kill(root, 0), 0);
}

// The processes keep forking until they are killed.
TEST_F(DescendantsTest, KillReachesProcessesThatKeepForking) {
  for (int i = 0; i < 2; ++i) {
    test::Fork([this] {
      ReportPid();
      for (pid_t child = 0; child == 0;) {
        child = fork();
        if (child == 0) setsid();
      }
      return 0;
    });
  }
  NextPids(2);
  KillDescendants({});
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(DescendantsTest, TheSparedAndTheirChildrenLive) {
  pid_t spared = StartTree();
  std::vector<pid_t> spared_tree = NextPids(3);
  pid_t other = StartTree();
  NextPids(3);
  EXPECT_EQ(KillDescendants({spared}), 3);
  EXPECT_NE(kill(other, 0), 0);
  for (pid_t pid : spared_tree) EXPECT_TRUE(test::IsRunning(pid)) << pid;
  EXPECT_THAT(Descendants(), UnorderedElementsAreArray(spared_tree));
}

TEST_F(DescendantsTest, FindsTheChildAboveAProcess) {
  pid_t root = StartTree();
  for (pid_t pid : NextPids(3)) EXPECT_EQ(ChildAbove(pid), root);
  for (pid_t stranger : {getpid(), getppid(), pid_t{1}, pid_t{0}, pid_t{-1}, pid_t{999'999'999}}) {
    EXPECT_EQ(ChildAbove(stranger), 0) << stranger;
  }
}

TEST_F(DescendantsTest, TheStartTimeDistinguishesProcesses) {
  EXPECT_GT(StartTimeOfProcess(getpid()), 0u);
  EXPECT_EQ(StartTimeOfProcess(getpid()), StartTimeOfProcess(getpid()));
  EXPECT_GT(StartTimeOfProcess(getpid()), StartTimeOfProcess(1));
  EXPECT_EQ(StartTimeOfProcess(999'999'999), 0u);
}

TEST_F(DescendantsTest, OnlyAProgramStartedWithoutOneHasNoEnvironment) {
  EXPECT_TRUE(MayHaveEnvironment(getpid()));
  EXPECT_FALSE(MayHaveEnvironment(999'999'999));
  auto without_environment = SpawnProcess({.file = "/bin/sleep", .arguments = {"sleep", "1000"}});
  ASSERT_TRUE(without_environment);
  EXPECT_TRUE(test::WaitFor([&] { return !MayHaveEnvironment(without_environment->pid); }));
  EXPECT_EQ(ReadOfProcess(without_environment->pid, "environ"), "");
}

// A process without permission to signal one of its children.
TEST_F(DescendantsTest, NamesProcessesThatItMayNotSignalAndWaits) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to start a process of another user";
  test::Pipe errors = test::MakePipe();
  test::Pipe life = test::MakePipe();
  pid_t powerless = test::Fork([&] {
    BecomeSubreaper();
    dup2(errors.write_end.get(), 2);
    errors.write_end.Reset();
    pid_t child = fork();
    life.write_end.Reset();
    char byte;
    if (child == 0) _exit(read(life.read_end.get(), &byte, 1) == 0 ? 0 : 1);
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) return 2;
    KillDescendants({});
    return 0;
  });
  errors.write_end.Reset();
  std::string text(200, ' ');
  ssize_t count = read(errors.read_end.get(), text.data(), text.size());
  ASSERT_GT(count, 0);
  EXPECT_NE(text.find("still waiting for the end of pid "), std::string::npos) << text;
  EXPECT_NE(text.find(", which we may not signal\n"), std::string::npos) << text;
  life.write_end.Reset();  // it ends by itself
  EXPECT_EQ(test::WaitForExit(powerless), (ProcessExit{.signaled = false, .value = 0}));
}

TEST_F(DescendantsTest, DescribesAProcess) {
  pid_t child = StartTree();
  NextPids(3);
  std::string text = DescribeProcess(child);
  std::string name = test::ReadWholeFile("/proc/self/comm");
  name.pop_back();
  EXPECT_TRUE(text.starts_with("pid " + std::to_string(child) + " (" + name + "), state ")) << text;
}

TEST_F(DescendantsTest, DescribesAProcessThatIsGone) {
  pid_t child = test::Fork([] { return 0; });
  test::WaitForExit(child);
  EXPECT_EQ(DescribeProcess(child), "pid " + std::to_string(child) + " ()");
}

TEST_F(DescendantsTest, AStartTimeHasAnAge) {
  pid_t child = test::Fork([this] { return Live(); });
  uint64_t start_time = StartTimeOfProcess(child);
  auto age = AgeOf(start_time);
  ASSERT_TRUE(age);
  EXPECT_LT(*age, test::kLong);
  EXPECT_TRUE(
      test::WaitFor([&] { return AgeOf(start_time) >= *age + std::chrono::milliseconds(20); }));
  EXPECT_EQ(AgeOf(0), std::nullopt);
  EXPECT_EQ(AgeOf(start_time + 1'000'000), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
