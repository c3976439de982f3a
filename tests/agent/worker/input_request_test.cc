#include "agent/worker/input_request.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "base/fd.h"

namespace rankrun::agent {
namespace {

using Kind = InputCall::Kind;

std::string Line(long number, const std::string& arguments) {
  return std::to_string(number) + " " + arguments + " 0x0 0x7ffd 0x7f31\n";
}

TEST(InputCallTest, ReadsNameTheirDescriptor) {
  auto call = ParseInputCall(Line(SYS_read, "0x7 0x5581"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kind, Kind::kRead);
  EXPECT_EQ(call->descriptor, 7);
}

TEST(InputCallTest, ASelectOfTheFirstDescriptorIsThatOfReadline) {
  auto call = ParseInputCall(Line(SYS_pselect6, "0x1 0x7ffc"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->descriptor, 0);
  EXPECT_FALSE(ParseInputCall(Line(SYS_pselect6, "0x5 0x7ffc")));
  EXPECT_FALSE(ParseInputCall(Line(SYS_pselect6, "0x0 0x0")));
}

TEST(InputCallTest, OtherCallsAskForNothing) {
  EXPECT_FALSE(ParseInputCall(Line(SYS_write, "0x0 0x1")));
  EXPECT_FALSE(ParseInputCall(Line(SYS_ppoll, "0x7ffc 0x2")));
  EXPECT_FALSE(ParseInputCall("running\n"));
  EXPECT_FALSE(ParseInputCall("-1 0x7ffc 0x7f31\n"));
  EXPECT_FALSE(ParseInputCall(""));
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
  bool ComesToWait() const {
    for (int i = 0; i < 5'000; ++i) {
      if (WaitsForInput(child, file).value_or(false)) return true;
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
  EXPECT_EQ(WaitsForInput(child, "pipe:[1]"), false);
}

TEST_F(WaitsForInputTest, OfAProcessThatHasEndedNothingIsKnown) {
  EXPECT_EQ(WaitsForInput(0, file), std::nullopt);
}

TEST_F(WaitsForInputTest, ACopyOfTheDescriptorCounts) {
  Start([](int fd) { ReadByte(dup(fd)); });
  EXPECT_TRUE(ComesToWait());
}

TEST_F(WaitsForInputTest, APollOrASelectOfItAloneCounts) {
  Start([](int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    poll(&entry, 1, -1);
    for (;;) pause();
  });
  EXPECT_TRUE(ComesToWait());
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
