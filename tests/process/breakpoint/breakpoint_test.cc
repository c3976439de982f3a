// Breakpoint in a job: the debugger of a rank on the terminal of rankrun.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <regex>

#include "tests/paths.h"
#include "tests/process/breakpoint/terminal.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrompt = "(gdb) ";
constexpr const char* kTrap = "received signal SIGTRAP";

// Arguments of a job of `workers` that call Breakpoint as held.cc says.
std::vector<std::string> Held(const std::vector<std::string>& arguments,
                              const std::string& workers = "2") {
  std::vector<std::string> all{"-n", workers, "--no-python", test::Program("held")};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// Returns the pid of the rank that has stopped; 0 if none has.
pid_t StoppedPid(const std::string& text) {
  std::smatch match;
  std::regex line(R"(rank \d+ \(pid (\d+)\) has stopped at a breakpoint)");
  return std::regex_search(text, match, line) ? std::stoi(match[1]) : 0;
}

void ExpectBothGoOn(const std::string& text) {
  EXPECT_THAT(text, HasSubstr("rank 0 goes on with 2"));
  EXPECT_THAT(text, HasSubstr("rank 1 goes on with 2"));
}

TEST(BreakpointJobTest, TheDebuggerHasTheTerminalAndGivesItBack) {
  ScratchFolder scratch;
  const std::string go = scratch.Path("go");
  TerminalJob job(Held({"1", "0", "1", go}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  EXPECT_FALSE(job.IsRestored());
  job.Type("up\n");  // Breakpoint is inlined into its caller
  EXPECT_TRUE(job.Shows("#1 ") && job.Shows("held.cc") && job.Shows(kPrompt));
  job.Type("detach\n");
  EXPECT_TRUE(job.ShowsAll({"detached]", "rank 0 goes on with 2", "rank 1 goes on with 2"}));
  EXPECT_FALSE(job.IsRestored());
  job.Type("quit\n");
  EXPECT_TRUE(WaitFor([&] { return job.IsRestored(); }));
  std::ofstream(go).close();
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

TEST(BreakpointJobTest, QuitLetsTheRankGoOn) {
  TerminalJob job(Held({"0", "0", "1"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  job.Type("quit\n");
  EXPECT_TRUE(job.Shows("(y or n) "));
  job.Type("y\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

// The second stop waits for the end of the first debugger, which does not release it.
TEST(BreakpointJobTest, ADetachedRankStopsAgainInADebuggerOfItsOwn) {
  TerminalJob job(Held({"1", "0", "2"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  job.Type("detach\n");
  ASSERT_TRUE(job.Shows("waits until the debugger of rank 1 has ended"));
  job.Type("quit\n");
  ASSERT_TRUE(job.Shows(": starting gdb") && job.Shows(kTrap) && job.Shows(kPrompt));
  EXPECT_THAT(job.text(), Not(HasSubstr("goes on with")));
  job.Type("detach\n");
  job.Type("quit\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

TEST(BreakpointJobTest, EachQuitLetsTheRankGoOnToItsNextStop) {
  TerminalJob job(Held({"1", "0", "2"}));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(job.Shows(": starting gdb") && job.Shows(kTrap) && job.Shows(kPrompt));
    job.Type("quit\n");
    EXPECT_TRUE(job.Shows("(y or n) "));
    job.Type("y\n");
  }
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

TEST(BreakpointJobTest, AContinuedRankStopsAtItsNextBreakpointInTheSameDebugger) {
  ScratchFolder scratch;
  const std::string go = scratch.Path("go");
  TerminalJob job(Held({"1", "1", "3", go}));
  ASSERT_TRUE(job.ShowsAll({"rank 1 makes call 2", kTrap, kPrompt}));
  EXPECT_THAT(job.text(), Not(HasSubstr("makes call 3")));
  job.Type("continue\n");
  ASSERT_TRUE(job.ShowsAll({"rank 0 makes call 3", "rank 1 makes call 3", kTrap, kPrompt}));
  job.Type("continue\n");
  EXPECT_TRUE(job.ShowsAll({"rank 0 goes on with 2", "rank 1 goes on with 2"}));
  std::ofstream(go).close();
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();  // the end of the rank ends the debugger
}

// Ctrl-C and Ctrl-Z are for the debugger alone.
TEST(BreakpointJobTest, KeysDoNotReachTheJob) {
  TerminalJob job(Held({"1", "0", "1"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  job.Type("\x03");
  EXPECT_TRUE(job.Shows("Quit") && job.Shows(kPrompt));
  job.Type("\x1a");
  job.Type("print 6 * 7\n");
  EXPECT_TRUE(job.Shows("$1 = 42") && job.Shows(kPrompt));
  job.Type("detach\n");
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

TEST(BreakpointJobTest, AKillInTheDebuggerIsTheDeathOfTheRank) {
  TerminalJob job(Held({"1", "0", "1"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  job.Type("kill\n");
  EXPECT_TRUE(job.Shows("(y or n) "));
  job.Type("y\n");
  EXPECT_EQ(job.Wait(), Code(128 + SIGKILL)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("cause: rank 1"));
  EXPECT_THAT(job.text(), HasSubstr("was waiting for the end of the breakpoint of rank 1"));
}

// A debugger that waits for a command does not reap its dead process.
TEST(BreakpointJobTest, ADeathAtThePromptEndsTheDebugger) {
  TerminalJob job(Held({"1", "0", "1"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  kill(StoppedPid(job.text()), SIGKILL);
  EXPECT_EQ(job.Wait(), Code(128 + SIGKILL)) << job.text();
  EXPECT_THAT(job.text(), HasSubstr("cause: rank 1"));
}

TEST(BreakpointJobTest, ARequestToStopEndsTheDebugger) {
  TerminalJob job(Held({"1", "0", "1"}));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  kill(job.pid(), SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM)) << job.text();
}

// gdb may keep the signal of a process that runs in it to itself.
TEST(BreakpointJobTest, ARequestToStopReachesARankThatRunsInADebugger) {
  ScratchFolder scratch;
  std::vector<std::string> arguments{"--shutdown-timeout", "600"};
  const auto held = Held({"1", "0", "1", scratch.Path("never")});
  arguments.insert(arguments.end(), held.begin(), held.end());
  TerminalJob job(arguments);
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  job.Type("continue\n");
  ASSERT_TRUE(job.ShowsAll({"rank 0 goes on with 2", "rank 1 goes on with 2"}));
  kill(job.pid(), SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM)) << job.text();
}

// Attaches a debugger by hand, as the message says, and lets the rank go on.
void AttachByHand(const std::string& message) {
  std::smatch match;
  std::regex command(R"(: gdb -p (\d+) -ex continue)");
  ASSERT_TRUE(std::regex_search(message, match, command)) << message;
  Job gdb({.arguments = {"-q", "-batch", "-p", match[1], "-ex", "continue", "-ex", "detach"},
           .variables = {{"HOME", "/"}},
           .program = "/usr/bin/gdb"});
  EXPECT_EQ(gdb.Wait(), Code(0)) << gdb.Err();
  EXPECT_THAT(gdb.Out(), HasSubstr(kTrap));
}

TEST(BreakpointJobTest, WithoutATerminalAMessageSaysHowToAttach) {
  Job job({.arguments = Held({"1", "0", "1"}), .orphaned = true});
  ASSERT_TRUE(job.WaitForErr("but rankrun has no terminal here; to go on, attach a debugger on"));
  ASSERT_TRUE(job.WaitForErr("-ex continue\n"));
  AttachByHand(job.Err());
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  ExpectBothGoOn(job.Out());
}

TEST(BreakpointJobTest, WithoutADebuggerAMessageSaysHowToAttach) {
  TerminalJob job(Held({"0", "0", "1"}), {{"RANKRUN_DEBUGGER", "no-such-debugger"}});
  ASSERT_TRUE(
      job.Shows("but RANKRUN_DEBUGGER: run no-such-debugger: No such file or directory; "
                "to go on, attach a debugger on host "));
  ASSERT_TRUE(job.Shows("-ex continue"));
  EXPECT_TRUE(WaitFor([&] { return job.IsRestored(); }));
  AttachByHand(job.text());
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

// The script stands for a debugger that cannot attach.
TEST(BreakpointJobTest, TheEndOfADebuggerThatHasNotAttachedLetsTheRankGoOn) {
  ScratchFolder scratch;
  const std::string script = scratch.Script("debugger", "echo \"arguments: $*\"");
  TerminalJob job(Held({"0", "0", "1"}), {{"RANKRUN_DEBUGGER", script}});
  ASSERT_TRUE(job.Shows("arguments: -q -p "));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
  ExpectBothGoOn(job.text());
}

// Until the rank goes on.
TEST(BreakpointJobTest, OnlyTheDebuggedRankWritesToTheTerminal) {
  const std::string program =
      "test $RANK = 1 || while :; do echo line of rank 0; sleep 0.01; done & exec " +
      test::Program("held") + " 1 0 1";
  TerminalJob job(Shell({"-n", "2"}, program));
  ASSERT_TRUE(job.Shows(kTrap) && job.Shows(kPrompt));
  const size_t prompt = job.text().size();
  job.Type("call (int)puts(\"by the debugger\")\n");
  ASSERT_TRUE(job.ShowsAll({"[1] by the debugger", kPrompt}));
  EXPECT_THAT(job.text().substr(prompt), Not(HasSubstr("line of rank 0")));
  job.Type("detach\n");
  EXPECT_TRUE(job.Shows("line of rank 0"));
  EXPECT_EQ(job.Wait(), Code(0)) << job.text();
}

}  // namespace
}  // namespace rankrun::testing
