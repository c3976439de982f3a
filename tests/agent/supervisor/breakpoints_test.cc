#include "agent/supervisor/breakpoints.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = BreakpointNotice::Kind;
using Outcome = DebuggerReport::Outcome;

// A process below this one, as a worker is.
struct Process {
  Process() {
    if (pid == 0) {
      for (;;) pause();
    }
  }
  Process(const Process&) = delete;
  ~Process() { End(); }
  void End() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  const pid_t pid = fork();
};

struct BreakpointsTest : testing::Test {
  Breakpoints::Callbacks Record() {
    return {.start =
                [this](StartDebugger request) {
                  calls.push_back(request.pipe < 0 ? "start " + NameOf(request.process)
                                                   : "lend " + NameOf(request.process) + " " +
                                                         std::to_string(request.pipe));
                },
            .end = [this] { calls.push_back("end"); },
            .let_go =
                [this](pid_t worker, uint32_t hold) {
                  calls.push_back("let go " + NameOf(worker) + " " + std::to_string(hold));
                },
            .hold_output =
                [this](std::optional<pid_t> worker) {
                  calls.push_back(worker ? "hold all but " + NameOf(*worker) : "hold none");
                },
            .show = [this](const std::string& line) { shown.push_back(line); }};
  }
  std::string NameOf(pid_t process) const { return process == one.pid ? "one" : "two"; }
  std::vector<std::string> Calls() { return std::exchange(calls, {}); }

  Process one;
  Process two;
  Loop loop;
  std::vector<std::string> calls;
  std::vector<std::string> shown;
  Breakpoints breakpoints{loop, "gdb", Record()};
};

TEST_F(BreakpointsTest, TheRankThatHasStoppedGetsADebugger) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  EXPECT_THAT(Calls(), ElementsAre("hold all but one", "start one"));
  breakpoints.OnNotice({Kind::kPassed, 2, one.pid, 1});
  EXPECT_THAT(Calls(), ElementsAre("hold none"));
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1"));
}

TEST_F(BreakpointsTest, ASecondRankWaitsForTheEndOfTheFirstDebugger) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kStopped, 3, two.pid, 1});
  EXPECT_THAT(Calls(), ElementsAre("hold all but one", "start one"));
  EXPECT_THAT(shown.back(), HasSubstr("waits until the debugger of rank 2 has ended"));
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1", "hold all but two", "start two"));
}

TEST_F(BreakpointsTest, TheEndOfADebuggerIsTheEndOfItsOwnStopAlone) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kPassed, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 2});
  Calls();
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1", "hold all but one", "start one"));
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 2"));
}

TEST_F(BreakpointsTest, ARankThatGoesOnWhileItWaitsGetsNoDebugger) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kStopped, 3, two.pid, 1});
  breakpoints.OnNotice({Kind::kPassed, 3, two.pid, 1});
  Calls();
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1"));
}

TEST_F(BreakpointsTest, WithoutADebuggerTheRankStaysAndALineSaysHowToAttach) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  Calls();
  breakpoints.OnReport({Outcome::kInBackground, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none"));
  const std::string process = std::to_string(one.pid);
  EXPECT_THAT(shown.back(), StartsWith("rankrun: rank 2 (pid " + process +
                                       ") has stopped at a breakpoint, but rankrun is in the "
                                       "background of its terminal; to go on, attach a debugger "
                                       "on host "));
  EXPECT_THAT(shown.back(), HasSubstr(": gdb -p " + process + " -ex continue\n"));
}

TEST_F(BreakpointsTest, AProcessThatDebugsItselfGetsTheTerminal) {
  breakpoints.OnNotice({Kind::kBorrows, 2, one.pid, 1, 9});
  EXPECT_THAT(Calls(), ElementsAre("hold all but one", "lend one 9"));
  EXPECT_THAT(shown.back(), HasSubstr("has stopped at a breakpoint: lending it the terminal\n"));
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1"));
}

TEST_F(BreakpointsTest, AProcessReturnsTheTerminalOfItsOwnStopAlone) {
  breakpoints.OnNotice({Kind::kBorrows, 2, one.pid, 2, 9});
  Calls();
  breakpoints.OnNotice({Kind::kReturned, 2, one.pid, 1});
  EXPECT_THAT(Calls(), ElementsAre());
  breakpoints.OnNotice({Kind::kReturned, 2, one.pid, 2});
  EXPECT_THAT(Calls(), ElementsAre("end"));
}

TEST_F(BreakpointsTest, AProcessThatCannotGetTheTerminalIsTold) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Fd read_end(ends[0]), write_end(ends[1]);
  Process asker;  // has the pipe, too
  breakpoints.OnNotice({Kind::kBorrows, 2, asker.pid, 1, write_end.get()});
  breakpoints.OnReport({Outcome::kNoTerminal, 0});
  char answer = 0;
  EXPECT_EQ(read(read_end.get(), &answer, 1), 1);
  EXPECT_EQ(answer, '\n');
  EXPECT_THAT(shown.back(), HasSubstr(") has stopped at a breakpoint, but rankrun has no terminal "
                                      "here\n"));
}

// The descriptor may be another one by now.
TEST_F(BreakpointsTest, NothingIsWrittenToAFile) {
  char name[] = "/tmp/breakpoints_test.XXXXXX";
  Fd file(mkstemp(name));
  Process asker;
  breakpoints.OnNotice({Kind::kBorrows, 2, asker.pid, 1, file.get()});
  breakpoints.OnReport({Outcome::kNoTerminal, 0});
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), 0);
  unlink(name);
}

TEST_F(BreakpointsTest, TheEndOfTheProcessEndsItsDebugger) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  Calls();
  one.End();
  EXPECT_TRUE(loop.RunUntil([&] { return !calls.empty(); }, test::kLong));
  EXPECT_THAT(Calls(), ElementsAre("end"));
}

TEST_F(BreakpointsTest, StoppingTheWorkersEndsTheDebuggerAndForgetsWhoWaits) {
  breakpoints.Clear();
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kStopped, 3, two.pid, 1});
  Calls();
  breakpoints.Clear();
  EXPECT_THAT(Calls(), ElementsAre("end"));
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1"));
}

TEST_F(BreakpointsTest, ARankThatDiesWhileItWaitsGetsNoDebugger) {
  breakpoints.OnNotice({Kind::kStopped, 2, one.pid, 1});
  breakpoints.OnNotice({Kind::kStopped, 3, two.pid, 1});
  two.End();
  Calls();
  breakpoints.OnReport({Outcome::kEnded, 0});
  EXPECT_THAT(Calls(), ElementsAre("hold none", "let go one 1"));
}

TEST_F(BreakpointsTest, AProcessThatIsNoWorkersGetsNoDebuggerButALineThatSaysHowToAttach) {
  breakpoints.OnNotice({Kind::kStopped, 2, getppid(), 1});
  EXPECT_THAT(Calls(), ElementsAre());
  EXPECT_THAT(shown.back(),
              HasSubstr("no process below this rankrun has that pid here; to go on, "));
  EXPECT_THAT(shown.back(), HasSubstr(": gdb -p " + std::to_string(getppid()) + " -ex continue\n"));
}

}  // namespace
}  // namespace rankrun::agent
