#include "agent/worker/input_request.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "base/fd.h"

namespace rankrun::agent {
namespace {

std::string Line(long number, const std::string& arguments) {
  return std::to_string(number) + " " + arguments + " 0x0 0x7ffd 0x7f31\n";
}

TEST(AwaitedInputTest, AReadNamesItsDescriptor) {
  EXPECT_EQ(AwaitedInput(Line(SYS_read, "0x7 0x5581")), 7);
}

TEST(AwaitedInputTest, ASelectOfTheFirstDescriptorIsThatOfReadline) {
  EXPECT_EQ(AwaitedInput(Line(SYS_pselect6, "0x1 0x7ffc")), 0);
  EXPECT_FALSE(AwaitedInput(Line(SYS_pselect6, "0x5 0x7ffc")));
  EXPECT_FALSE(AwaitedInput(Line(SYS_pselect6, "0x0 0x0")));
}

TEST(AwaitedInputTest, OtherCallsAskForNothing) {
  EXPECT_FALSE(AwaitedInput(Line(SYS_write, "0x0 0x1")));
  EXPECT_FALSE(AwaitedInput(Line(SYS_ppoll, "0x7ffc 0x1")));
  EXPECT_FALSE(AwaitedInput("running\n"));
  EXPECT_FALSE(AwaitedInput("-1 0x7ffc 0x7f31\n"));
  EXPECT_FALSE(AwaitedInput(""));
}

// A child of this process with a pipe.
struct WaitsForInputTest : ::testing::Test {
  WaitsForInputTest() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    read_end.Reset(ends[0]);
    write_end.Reset(ends[1]);
    file = FileOfDescriptor(getpid(), ends[0]);
  }
  ~WaitsForInputTest() override {
    if (child == 0) return;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  void Start(const std::function<void(int fd)>& wait) {
    child = fork();
    if (child != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(read_end.get(), 0);
    wait(0);
    _exit(0);
  }
  bool ComesToWait(Readers readers = Readers::kMainThreads) const {
    for (int i = 0; i < 5'000; ++i) {
      if (WaitsForInput(child, file, readers)) return true;
      poll(nullptr, 0, 2);
    }
    return false;
  }

  Fd read_end, write_end;
  std::string file;
  pid_t child = 0;
};

void ReadByte(int fd) {
  char byte;
  static_cast<void>(read(fd, &byte, 1) + 1);
}

TEST_F(WaitsForInputTest, AProcessThatReadsThePipeWaitsForInput) {
  EXPECT_EQ(file.find("pipe:["), 0U) << file;
  Start(ReadByte);
  EXPECT_TRUE(ComesToWait());
  EXPECT_FALSE(WaitsForInput(child, "pipe:[1]", Readers::kAll));
}

TEST_F(WaitsForInputTest, AProcessThatHasEndedDoesNotWait) {
  EXPECT_FALSE(WaitsForInput(0, file, Readers::kAll));
}

TEST_F(WaitsForInputTest, ACopyOfTheDescriptorCounts) {
  Start([](int fd) { ReadByte(dup(fd)); });
  EXPECT_TRUE(ComesToWait());
}

TEST_F(WaitsForInputTest, AnyThreadCountsWhereAllAreRead) {
  Start([](int fd) {
    std::thread([fd] { ReadByte(fd); }).detach();
    for (;;) pause();
  });
  EXPECT_TRUE(ComesToWait(Readers::kAll));
  EXPECT_FALSE(WaitsForInput(child, file, Readers::kMainThreads));
}

TEST_F(WaitsForInputTest, AChildWhoseParentDoesElseCountsWhereAllAreRead) {
  Start([](int fd) {
    if (fork() != 0) {
      for (;;) pause();
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ReadByte(fd);
    _exit(0);
  });
  EXPECT_TRUE(ComesToWait(Readers::kAll));
  EXPECT_FALSE(WaitsForInput(child, file, Readers::kMainThreads));
}

TEST_F(WaitsForInputTest, AChildOfAWrapperCounts) {
  Start([](int fd) {
    if (const pid_t program = fork(); program != 0) {
      waitpid(program, nullptr, 0);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ReadByte(fd);
    _exit(0);
  });
  EXPECT_TRUE(ComesToWait());
}

TEST(IsInForegroundTest, AProcessWithoutATerminalIs) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    _exit(IsInForeground(getpid()) ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(IsInForeground(child)) << "it has ended";
}

}  // namespace
}  // namespace rankrun::agent
