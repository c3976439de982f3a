// Programs that ask a person for input, in a job on a terminal.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/breakpoint/terminal.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrompt = "(Pdb) ";

struct PromptTest : ::testing::Test {
  // Returns the path of a program in Python, which knows its `rank`.
  std::string Program(const std::string& body) const {
    const std::string path = folder.Path("program.py");
    std::ofstream(path) << "import os, time\nrank = int(os.environ['RANK'])\n" << body;
    return path;
  }
  // Lets other ranks than 0 wait until Go().
  std::string AfterRank0() const {
    return "while rank > 0 and not os.path.exists('" + folder.Path("go") + "'): time.sleep(0.01)\n";
  }
  void Go() const { folder.Script("go", ""); }
  std::vector<std::string> Python(std::vector<std::string> flags, const std::string& body) const {
    flags.push_back(Program(body));
    return flags;
  }

  ScratchFolder folder;
};

TEST_F(PromptTest, InputOfAnyRankComesFromTheTerminal) {
  TerminalJob job(Python({"-n", "3"},
                         "if rank == 2:\n"
                         "  print('got', input('name? '), flush=True)\n"
                         "  try: input('more? ')\n"
                         "  except EOFError: print('ended', flush=True)\n"));
  ASSERT_TRUE(job.Shows("name? ") && job.Shows("rank 2 waits for input: lending it the terminal"));
  job.Type("one two\n");
  ASSERT_TRUE(job.Shows("got one two\n") && job.Shows("more? "));
  job.Type("\x04");
  EXPECT_TRUE(job.Shows("ended\n"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, RanksAtABreakpointTakeTurns) {
  TerminalJob job(Python({"-n", "3"}, AfterRank0() +
                                          "value = 40 + rank\n"
                                          "breakpoint()\n"
                                          "print('rank', rank, 'goes on', flush=True)\n"));
  for (const std::string rank : {"0", "1", "2"}) {
    if (rank == "0") {
      ASSERT_TRUE(job.Shows(kPrompt));
      Go();
      ASSERT_TRUE(job.ShowsAll({"rank 1 waits for input, and for the terminal, which rank 0 has",
                                "rank 2 waits for input, and for the terminal, which rank 0 has"}));
    } else {
      ASSERT_TRUE(job.Shows("rank " + rank + " waits for input: lending it the terminal"));
    }
    job.Type("p value\n");
    EXPECT_TRUE(job.Shows("[" + rank + "] 4" + rank + "\n") && job.Shows(kPrompt));
    job.Type("continue\n");
    EXPECT_TRUE(job.Shows("[" + rank + "] rank " + rank + " goes on"));
  }
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  EXPECT_THAT(job.text(), Not(HasSubstr("cause")));
}

TEST_F(PromptTest, PdbRunsTheScriptOfARank) {
  const std::string wrapper =
      folder.Script("wrap.sh", "[ $RANK = 0 ] || exec python3 -u -m pdb '" +
                                   Program("print('ran', rank, flush=True)\n") + "'\n");
  TerminalJob job({"-n", "2", "--no-python", wrapper});
  ASSERT_TRUE(job.Shows("rank 1 waits for input: lending it the terminal"));
  job.Type("continue\n");
  ASSERT_TRUE(job.Shows("ran 1\n") && job.Shows(kPrompt));
  job.Type("quit\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, AProgramOfAWrapperMayAsk) {
  const std::string script = folder.Script(
      "wrap.sh", "[ $RANK = 0 ] || python3 '" + Program("print('got', input())\n") + "'\nexit 0\n");
  TerminalJob job({"-n", "2", "--no-python", script});
  ASSERT_TRUE(job.Shows("rank 1 waits for input: lending it the terminal"));
  job.Type("x\n");
  EXPECT_TRUE(job.Shows("got x\n"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, WithoutInputTheReportNamesTheFlag) {
  TerminalJob job(Python({"-n", "2", "--stdin=none"}, "if rank == 1: breakpoint()\nprint()\n"));
  EXPECT_EQ(job.Wait(), Code(1)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("it read the end of its standard input; --stdin 1"));
}

TEST_F(PromptTest, QuitEndsTheRankWithoutAHint) {
  TerminalJob job(Python({"-n", "2"}, "if rank == 1:\n  breakpoint()\n  print()\n"));
  ASSERT_TRUE(job.Shows("lending it the terminal"));
  job.Type("quit\n");
  EXPECT_EQ(job.Wait(), Code(1)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("bdb.BdbQuit"));
  EXPECT_THAT(job.text(), Not(HasSubstr("hint:")));
}

TEST_F(PromptTest, CtrlCEndsAJobThatAsks) {
  TerminalJob job(Python({"-n", "2"}, "if rank == 1: input('name? ')\n"));
  ASSERT_TRUE(job.Shows("lending it the terminal"));
  job.Type("\x03");
  EXPECT_EQ(job.Wait(), KilledBy(SIGINT)) << job.text();
}

TEST_F(PromptTest, ARankAtAPromptDoesNotHang) {
  TerminalJob job(Python({"-n", "2", "--hang-notice=0.3", "--hang-timeout=1"},
                         "if rank == 1: input('name? ')\n"
                         "else:\n"
                         "  import time; time.sleep(3)\n"
                         "  print('awake', flush=True)\n"));
  ASSERT_TRUE(job.Shows("awake\n"));
  job.Type("x\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, ByTheNameTorchrunAllRanksInheritTheTerminal) {
  const std::string torchrun = folder.Path("torchrun");
  ASSERT_EQ(symlink(test::Program("rankrun").c_str(), torchrun.c_str()), 0);
  TerminalJob job(Python({"--nproc-per-node=2"},
                         "if rank == 1: print('got', input('name? '), os.isatty(0), flush=True)\n"),
                  {}, torchrun);
  ASSERT_TRUE(job.Shows("name? "));
  job.Type("x\n");
  EXPECT_TRUE(job.Shows("got x True\n"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  EXPECT_THAT(job.text(), Not(HasSubstr("lending")));
}

TEST_F(PromptTest, EveryRankSeesATerminal) {
  TerminalJob job(Python({"-n", "2"},
                         "import subprocess, sys\n"
                         "if not sys.stdin.isatty(): sys.stdin.read()\n"
                         "subprocess.run(['sh', '-c', 'test -t 0 || cat'], capture_output=True)\n"
                         "print('terminal', rank, os.isatty(0), flush=True)\n"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("terminal 0 True\n"));
  EXPECT_THAT(job.text(), HasSubstr("terminal 1 True\n"));
}

TEST_F(PromptTest, AnyThreadMayAsk) {
  TerminalJob job(Python({"-n", "2"},
                         "from threading import Thread\n"
                         "def ask(): print('got', os.read(0, 9), flush=True)\n"
                         "if rank == 1:\n"
                         "  asks = Thread(target=ask)\n"
                         "  asks.start()\n"
                         "  print('runs', flush=True)\n"
                         "  asks.join()\n"));
  ASSERT_TRUE(job.Shows("runs\n"));
  job.Type("x\n");
  EXPECT_TRUE(job.Shows("got b'x\\n'"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, ARankMayPollItsInput) {
  TerminalJob job(Python({"-n", "2"},
                         "import select\n"
                         "if rank == 1:\n"
                         "  polls, epoll = select.poll(), select.epoll()\n"
                         "  polls.register(0, select.POLLIN)\n"
                         "  epoll.register(0, select.EPOLLIN)\n"
                         "  for wait in polls.poll, epoll.poll:\n"
                         "    print('waits', flush=True)\n"
                         "    wait()\n"
                         "    print('got', os.read(0, 9), flush=True)\n"));
  for (const std::string text : {"x", "y"}) {
    ASSERT_TRUE(job.Shows("waits\n"));
    job.Type(text + "\n");
    EXPECT_TRUE(job.Shows("got b'" + text + "\\n'"));
  }
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, InTheBackgroundTheInputHasEnded) {
  const std::string program = Program(
      "if rank == 1:\n"
      "  try: input('name? ')\n"
      "  except EOFError: print('ended', flush=True)\n");
  TerminalJob job({"-c", "set -m; '" + test::Program("rankrun") + "' -n2 '" + program + "' & wait"},
                  {}, "/bin/sh");
  EXPECT_TRUE(job.Shows("ended\n"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PromptTest, AfterCtrlZTheKeysAreForTheShell) {
  const std::string program = Program("if rank == 1: print('got', input('name? '), flush=True)\n");
  TerminalJob job({"--norc", "-i"}, {{"PS1", "shell> "}}, "/bin/bash");
  ASSERT_TRUE(job.Shows("shell> "));
  job.Type("'" + test::Program("rankrun") + "' -n2 '" + program + "'\n");
  ASSERT_TRUE(job.Shows("lending it the terminal"));
  job.Type("\x1a");
  ASSERT_TRUE(job.Shows("shell> "));
  job.Type("bg\n");
  ASSERT_TRUE(job.Shows("shell> "));
  for (const std::string number : {"1", "2", "3"}) {
    job.Type("echo $((40 + " + number + "))\n");
    ASSERT_TRUE(job.Shows("\n4" + number + "\n"));
  }
  job.Type("fg\n");
  ASSERT_TRUE(job.Shows("program.py"));
  job.Type("x\n");
  EXPECT_TRUE(job.Shows("got x\n"));
  ASSERT_TRUE(job.Shows("shell> "));
  job.Type("exit\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

}  // namespace
}  // namespace rankrun::testing
