#include "base/process/spawn_slots.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/base/denied_call.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

SpawnSlots OpenSlots() {
  auto slots = SpawnSlots::Open();
  EXPECT_TRUE(slots) << slots.error().message;
  return std::move(*slots);
}

SpawnSpec Shell(const std::string& script, int output) {
  SpawnSpec spec{.file = "/bin/sh", .arguments = {"sh", "-c", script}};
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.stdout_fd = output;
  return spec;
}

// Returns the output of `script`. The pipe ends although `slots` stay open.
std::string OutputOf(const std::string& script, const SpawnSlots& slots) {
  test::Pipe pipe = test::MakePipe();
  auto process = SpawnProcess(Shell(script, pipe.write_end.get()), slots);
  if (!process) return process.error().message;
  pipe.write_end.Reset();
  pollfd wait{pipe.read_end.get(), POLLIN, 0};
  if (poll(&wait, 1, 10'000) != 1) return "nothing";
  std::string output = test::ReadToEnd(pipe.read_end.get());
  test::WaitForExit(process->pid);
  return output;
}

ino_t InodeOf(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

TEST(SpawnSlotsTest, OneAfterTheOtherIsStartedThroughTheSame) {
  SpawnSlots slots = OpenSlots();
  EXPECT_EQ(OutputOf("echo one", slots), "one\n");
  EXPECT_EQ(OutputOf("echo two; ls /proc/$$/fd", slots), "two\n0\n1\n2\n");
}

TEST(SpawnSlotsTest, TheParentsOwnDescriptorsStayAsTheyAre) {
  SpawnSlots slots = OpenSlots();
  std::vector<ino_t> before, after;
  for (int fd = 0; fd <= slots.highest() + 5; ++fd) before.push_back(InodeOf(fd));
  EXPECT_EQ(OutputOf("echo up", slots), "up\n");
  for (int fd = 0; fd <= slots.highest() + 5; ++fd) after.push_back(InodeOf(fd));
  EXPECT_EQ(before, after);
}

TEST(SpawnSlotsTest, DescriptorsAboveTheSlotsAreNotInherited) {
  SpawnSlots slots = OpenSlots();
  Fd leaky(open("/dev/null", O_RDONLY));  // deliberately not close-on-exec
  Fd high(fcntl(leaky.get(), F_DUPFD, 500));
  EXPECT_EQ(OutputOf("ls /proc/$$/fd; :", slots), "0\n1\n2\n");
}

TEST(SpawnSlotsTest, AfterAFailedStartTheyServeAgain) {
  SpawnSlots slots = OpenSlots();
  EXPECT_FALSE(SpawnProcess({.file = "/no/such", .arguments = {"such"}}, slots));
  SpawnSpec closed = Shell("echo up", 987654);
  EXPECT_FALSE(SpawnProcess(closed, slots));
  EXPECT_EQ(OutputOf("echo up", slots), "up\n");
}

// Leaves `free` descriptors to this process, from number 10 on.
void LeaveDescriptors(rlim_t free) {
  constexpr int kFirst = 10;
  while (fcntl(STDIN_FILENO, F_DUPFD, 0) < kFirst) {
  }
  close_range(kFirst, ~0U, 0);
  rlimit few{kFirst + free, kFirst + free};
  setrlimit(RLIMIT_NOFILE, &few);
}

TEST(SpawnSlotsTest, WithoutEnoughDescriptorsTheErrorIsTheirNumber) {
  constexpr rlim_t kNeeded = SpawnSlots::kCount + 1;
  for (rlim_t free = 0; free <= kNeeded; ++free) {
    pid_t starved = test::Fork([free] {
      LeaveDescriptors(free);
      auto slots = SpawnSlots::Open();
      if (slots) return free == kNeeded ? 0 : 1;
      return free < kNeeded && slots.error().code == ErrorCode::kExhausted ? 0 : 2;
    });
    EXPECT_EQ(test::WaitForExit(starved), ProcessExit{}) << free;
  }
}

TEST(SpawnSlotsTest, WhereDescriptorsCannotBeUnsharedTheyAreCopied) {
  pid_t confined = test::Fork([] {
    SpawnSlots slots = OpenSlots();
    if (!test::Deny({.name = "close_range", .number = SYS_close_range, .error = EPERM})) return 98;
    ino_t before = InodeOf(STDOUT_FILENO);
    for (int i = 0; i < 2; ++i) {
      if (OutputOf("echo up", slots) != "up\n") return 1;
    }
    return InodeOf(STDOUT_FILENO) == before && test::HasNoChild() ? 0 : 2;
  });
  EXPECT_EQ(test::WaitForExit(confined), ProcessExit{});
}

// As by qemu-user.
TEST(SpawnSlotsTest, WhereDescriptorsCannotBeSharedTheyAreCopied) {
  pid_t confined = test::Fork([] {
    SpawnSlots slots = OpenSlots();
    if (!test::Deny({.name = "clone",
                     .number = SYS_clone,
                     .error = EINVAL,
                     .mask = CLONE_FILES,
                     .value = CLONE_FILES})) {
      return 98;
    }
    for (int i = 0; i < 2; ++i) {
      if (OutputOf("echo up", slots) != "up\n") return 1;
    }
    return test::HasNoChild() ? 0 : 2;
  });
  EXPECT_EQ(test::WaitForExit(confined), ProcessExit{});
}

TEST(ChangedSignalsTest, TheyAreThoseThatAreHandledOrIgnored) {
  uint64_t before = ChangedSignals();
  auto* usr1 = signal(SIGUSR1, SIG_IGN);
  auto* usr2 = signal(SIGUSR2, [](int) {});
  uint64_t changed = ChangedSignals();
  signal(SIGUSR1, usr1);
  signal(SIGUSR2, usr2);
  EXPECT_EQ(changed, before | uint64_t{1} << (SIGUSR1 - 1) | uint64_t{1} << (SIGUSR2 - 1));
}

}  // namespace
}  // namespace rankrun
