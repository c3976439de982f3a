// rankrun.breakpoint() of Python in a job: pdb on the terminal of rankrun.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/breakpoint/terminal.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrompt = "(Pdb) ";

std::vector<std::string> Held(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"-n", "2", test::InSource("tests/process/workers/held.py")};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::map<std::string, std::string> ForPython() {
  return {{"PYTHONPATH", test::InSource("python")},
          {"RANKRUN_LIBRARY", test::Library("librankrun.so")}};
}

// Python cannot load a library with a sanitizer.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIBRARY_HAS_A_SANITIZER
#endif
#endif

struct PythonBreakpointTest : ::testing::Test {
  void SetUp() override {
#ifdef LIBRARY_HAS_A_SANITIZER
    GTEST_SKIP() << "Python cannot load librankrun with a sanitizer";
#endif
  }
};

TEST_F(PythonBreakpointTest, PdbHasTheTerminalAndGivesItBack) {
  ScratchFolder scratch;
  const std::string go = scratch.Path("go");
  TerminalJob job(Held({"1", "1", go}), ForPython());
  ASSERT_TRUE(job.Shows("rank 1 (pid ") && job.Shows(": lending it the terminal"));
  ASSERT_TRUE(job.Shows("held.py(") && job.Shows("secret = 40 + number") && job.Shows(kPrompt));
  EXPECT_FALSE(job.IsRestored());
  job.Type("p number + 41\n");
  EXPECT_TRUE(job.Shows("\n42\n") && job.Shows(kPrompt));
  EXPECT_THAT(job.text(), Not(HasSubstr("is after stop")));
  job.Type("continue\n");
  EXPECT_TRUE(job.ShowsAll({"rank 0 goes on", "rank 1 goes on"}));
  EXPECT_TRUE(WaitFor([&] { return job.IsRestored(); }));
  std::ofstream(go).close();
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

// Ctrl-C is for pdb alone, Ctrl-Z for nobody.
TEST_F(PythonBreakpointTest, KeysDoNotReachTheJob) {
  TerminalJob job(Held({"0", "1"}), ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("\x03");
  EXPECT_TRUE(job.Shows("--KeyboardInterrupt--") && job.Shows(kPrompt));
  job.Type("\x1a");
  job.Type("p 6 * 7\n");
  EXPECT_TRUE(job.Shows("\n42\n") && job.Shows(kPrompt));
  job.Type("continue\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PythonBreakpointTest, AStepLetsTheOthersGoOnAndKeepsTheTerminal) {
  TerminalJob job(Held({"1", "1"}), ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("next\n");
  EXPECT_TRUE(job.ShowsAll({"rank 0 goes on", "print(\"rank\", rank", kPrompt}));
  EXPECT_FALSE(job.IsRestored());
  job.Type("p secret\n");
  EXPECT_TRUE(job.Shows("\n41\n") && job.Shows(kPrompt));
  job.Type("continue\n");
  EXPECT_TRUE(job.Shows("rank 1 goes on"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

// Rank 0 waits at the second breakpoint for rank 1, which is at a prompt.
TEST_F(PythonBreakpointTest, ARankThatIsDebuggedAfterAStepDoesNotHang) {
  std::vector<std::string> arguments = Held({"1", "2"});
  arguments.insert(arguments.begin(), {"--hang-notice=1", "--hang-timeout=3"});
  TerminalJob job(arguments, ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("next\n");
  ASSERT_TRUE(job.ShowsAll({"rank 0 is after stop 1", "print(\"rank\", rank", kPrompt}));
  job.Type("p __import__('time').sleep(5)\n");
  ASSERT_TRUE(job.Shows("\nNone\n") && job.Shows(kPrompt));
  job.Type("continue\n");
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("continue\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  EXPECT_THAT(job.text(), Not(HasSubstr("--hang-timeout")));
  EXPECT_THAT(job.text(), Not(HasSubstr(" waits in ")));
}

TEST_F(PythonBreakpointTest, EachBreakpointStopsAgain) {
  TerminalJob job(Held({"1", "3"}), ForPython());
  for (const char* secret : {"1", "2", "3"}) {
    ASSERT_TRUE(job.Shows(kPrompt));
    job.Type("p number\n");
    EXPECT_TRUE(job.Shows("\n" + std::string(secret) + "\n") && job.Shows(kPrompt));
    job.Type("continue\n");
  }
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  EXPECT_THAT(job.text(), Not(HasSubstr("waits until the debugger")));
}

TEST_F(PythonBreakpointTest, ABreakpointOfPdbStopsInTheSameTerminal) {
  TerminalJob job(Held({"0", "2"}), ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("tbreak 17\n");
  ASSERT_TRUE(job.Shows("Breakpoint 1 at") && job.Shows(kPrompt));
  job.Type("continue\n");
  ASSERT_TRUE(job.Shows("return secret") && job.Shows(kPrompt));
  job.Type("continue\n");
  ASSERT_TRUE(job.Shows("secret = 40 + number") && job.Shows(kPrompt));
  job.Type("continue\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST_F(PythonBreakpointTest, QuitEndsTheRank) {
  TerminalJob job(Held({"1", "1"}), ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("quit\n");
  EXPECT_EQ(job.Wait(), Code(1)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("cause: rank 1"));
  EXPECT_THAT(job.text(), HasSubstr("bdb.BdbQuit"));
}

TEST_F(PythonBreakpointTest, TheDeathOfTheRankGivesTheTerminalBack) {
  TerminalJob job(Held({"1", "1"}), ForPython());
  ASSERT_TRUE(job.Shows(kPrompt));
  job.Type("import os; os.kill(os.getpid(), 9)\n");
  EXPECT_EQ(job.Wait(), Code(128 + SIGKILL)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("cause: rank 1"));
}

TEST_F(PythonBreakpointTest, WithoutATerminalTheRankHasAnError) {
  Job job({.arguments = Held({"1", "1"}), .variables = ForPython(), .orphaned = true});
  EXPECT_EQ(job.Wait(), Code(1)) << job.Err();
  EXPECT_THAT(job.Err(),
              HasSubstr(") has stopped at a breakpoint, but rankrun has no terminal here\n"));
  EXPECT_THAT(
      job.Err(),
      HasSubstr("RuntimeError: breakpoint: there is no terminal for a debugger of this rank: "
                "the output of rankrun has the reason"));
}

}  // namespace
}  // namespace rankrun::testing
