// Jobs of one node: environment of the workers, exit codes, messages.

#include <gmock/gmock.h>
#include <signal.h>

#include <set>

#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ProcessExit kSuccess{.signaled = false, .value = 0};

// The lines of a file; the order of the workers does not matter.
std::multiset<std::string> Lines(const std::string& text) {
  std::multiset<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.insert(text.substr(begin, end - begin));
  }
  return lines;
}

TEST(RunTest, VersionAndHelpGoToStandardOutput) {
  Job version({.arguments = {"--version"}});
  EXPECT_EQ(version.Wait(), kSuccess);
  EXPECT_THAT(version.Out(), ::testing::MatchesRegex("rankrun [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  Job help({.arguments = {"--help"}});
  EXPECT_EQ(help.Wait(), kSuccess);
  EXPECT_THAT(help.Out(), AllOf(HasSubstr("Usage: rankrun"), HasSubstr("--max-restarts")));
}

TEST(RunTest, TypoInAFlagEndsWithTwoAndTheNearestName) {
  Job run({.arguments = {"--max-restars", "3", "true"}});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_EQ(run.Err(), "rankrun: unknown flag --max-restars; did you mean --max-restarts?\n");
}

TEST(RunTest, UnknownProgramEndsAsInAShell) {
  Job run({.arguments = {"no-such-program-here"}});
  EXPECT_EQ(run.Wait(), Code(127));
  EXPECT_EQ(run.Err(),
            "rankrun: no-such-program-here: no such file in the current folder, nor such a "
            "program in PATH\n");
}

TEST(RunTest, EachWorkerHasItsPlace) {
  Job run({.arguments = Shell({"-n", "3"},
                              "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE "
                              "$MASTER_ADDR $TORCHELASTIC_RESTART_COUNT")});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(Lines(run.Out()),
            (std::multiset<std::string>{"0 0 3 3 127.0.0.1 0", "1 1 3 3 127.0.0.1 0",
                                        "2 2 3 3 127.0.0.1 0"}));
  EXPECT_EQ(run.Err(), "");
}

TEST(RunTest, WorkersSeeOnlyTheirOwnDescriptors) {
  Job run({.arguments = {"-n", "2", "--no-python", "ls", "/proc/self/fd"}});
  EXPECT_EQ(run.Wait(), kSuccess);
  // 3 is the status page, 4 is the folder that ls reads.
  EXPECT_EQ(Lines(run.Out()),
            (std::multiset<std::string>{"0", "0", "1", "1", "2", "2", "3", "3", "4", "4"}));
}

TEST(RunTest, StandardInputGoesToTheFirstWorker) {
  Job run({.arguments = Shell({"-n", "2"}, "echo $RANK $(cat)"), .stdin_text = "word"});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(Lines(run.Out()), (std::multiset<std::string>{"0 word", "1"}));
}

TEST(RunTest, JobEndsWithTheCodeOfTheCause) {
  Job run({.arguments = Shell({"-n", "3"}, "[ $RANK = 1 ] && exit 85; exec sleep 100")});
  EXPECT_EQ(run.Wait(), Code(85));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("cause: rank 1 (pid "), HasSubstr("): exit code 85\n"),
                               HasSubstr("then: ranks 0, 2: killed by SIGTERM, sent by rankrun\n"),
                               HasSubstr("next: the end, --max-restarts is 0; exit code 85\n")));
}

TEST(RunTest, JobEndsWith128PlusTheSignalOfTheCause) {
  Job run({.arguments = Shell({"-n", "2"}, "[ $RANK = 1 ] && kill -9 $$; exec sleep 100")});
  EXPECT_EQ(run.Wait(), Code(128 + SIGKILL));
  EXPECT_THAT(run.Err(), HasSubstr("killed by SIGKILL, not sent by rankrun"));
}

TEST(RunTest, FailureIsRestartedWithinTheBudget) {
  Job run({.arguments = Shell({"-n", "2", "--max-restarts", "2"},
                              "echo $RANK $TORCHELASTIC_RESTART_COUNT $MASTER_PORT\n"
                              "[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && exit 3\n"
                              "[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exec sleep 100\n"
                              "exit 0")});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_THAT(run.Out(), AllOf(HasSubstr("0 1 "), HasSubstr("1 1 "), Not(HasSubstr("0 2 "))));
  EXPECT_THAT(run.Err(),
              AllOf(HasSubstr("attempt 0 failed"), HasSubstr("next: restart 1 of 2, at once\n")));
}

TEST(RunTest, UsedUpBudgetEndsTheJob) {
  Job run({.arguments = Shell({"--max-restarts", "2"}, "exit 4")});
  EXPECT_EQ(run.Wait(), Code(4));
  EXPECT_THAT(run.Err(), AllOf(HasSubstr("next: restart 1 of 2, at once\n"),
                               HasSubstr("next: restart 2 of 2, in 1.0 s: 2 failures in a row"),
                               HasSubstr("next: the end, 2 of 2 restarts used; exit code 4\n")));
}

TEST(RunTest, TypedPortStaysOverRestartsAndAFreeOneDoesNot) {
  std::string script = "echo $MASTER_PORT; [ $TORCHELASTIC_RESTART_COUNT = 1 ]";
  Job fixed({.arguments = Shell({"--max-restarts=1", "--master-port=0"}, script)});
  EXPECT_EQ(fixed.Wait(), kSuccess);
  auto ports = Lines(fixed.Out());
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_NE(*ports.begin(), *ports.rbegin()) << "0 asks for a free port";
  std::string port = *ports.begin();  // was free a moment ago
  Job kept({.arguments = Shell({"--max-restarts=1", "--master-port=" + port}, script)});
  EXPECT_EQ(kept.Wait(), kSuccess);
  EXPECT_EQ(Lines(kept.Out()), (std::multiset<std::string>{port, port}));
}

TEST(RunTest, ReportHasTheLastWordsAndSaysWhereMoreIs) {
  ScratchFolder tmp;
  Job run({.arguments = Shell({}, "seq 1 100 >&2; exit 1"), .variables = {{"TMPDIR", tmp.path()}}});
  EXPECT_EQ(run.Wait(), Code(1));
  std::string err = run.Err();
  EXPECT_THAT(err,
              AllOf(HasSubstr("    | 81\n"), HasSubstr("    | 100\n"), Not(HasSubstr("| 80\n"))));
  size_t more = err.find("    more: ");
  ASSERT_NE(more, std::string::npos) << err;
  std::string file = err.substr(more + 10, err.find('\n', more) - more - 10);
  EXPECT_THAT(file, ::testing::StartsWith(tmp.path()));
  EXPECT_THAT(ReadText(file), AllOf(HasSubstr("1\n2\n3\n"), HasSubstr("100\n")));
}

TEST(RunTest, ErrorFileOfAPythonWorkerIsInTheReport) {
  Job run({.arguments = Shell({}, R"(echo '{"message": {"message": "ValueError: no data",
      "extraInfo": {"timestamp": "1"}}}' > $TORCHELASTIC_ERROR_FILE; exit 1)")});
  EXPECT_EQ(run.Wait(), Code(1));
  EXPECT_THAT(run.Err(), HasSubstr("exception: ValueError: no data\n"));
}

TEST(RunTest, FolderOfErrorFilesIsRemovedWhenAllGoesWell) {
  ScratchFolder tmp;
  Job run({.arguments = Shell({}, "touch $TORCHELASTIC_ERROR_FILE"),
           .variables = {{"TMPDIR", tmp.path()}}});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(run.Err(), "");
  EXPECT_EQ(run.Out(), "");
  Job list({.arguments = {tmp.path()}, .program = "/bin/ls"});
  EXPECT_EQ(list.Wait(), kSuccess);
  EXPECT_EQ(list.Out(), "");
}

TEST(RunTest, MissingFolderForErrorFilesIsSaidAndHarmsNothing) {
  Job run({.arguments = Shell({}, "exit 0"), .variables = {{"TMPDIR", "/no/such/folder"}}});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_THAT(run.Err(), HasSubstr("set TMPDIR to a writable folder"));
}

TEST(RunTest, TakenPortIsNamed) {
  Job first({.arguments = Shell({}, "echo port $MASTER_PORT; exec sleep 100")});
  ASSERT_TRUE(first.WaitForOut("port "));
  std::string port = first.Out().substr(5);
  port.pop_back();
  Job second({.arguments = Shell({"--master-port", port}, "exit 0")});
  EXPECT_EQ(second.Wait(), Code(2));
  EXPECT_THAT(second.Err(), AllOf(HasSubstr("rankrun: --master-port " + port + ": "),
                                  HasSubstr("Address already in use")));
}

TEST(RunTest, TypedAddressIsBoundBesidesLoopbackAndPassedUnchanged) {
  std::string script =
      "bash -c 'for host in $MASTER_ADDR 127.0.0.1; do exec 3<>/dev/tcp/$host/$MASTER_PORT || "
      "exit; "
      "echo $host; done'";
  Job job({.arguments = Shell({"--master-addr", "127.0.1.1"}, script)});
  EXPECT_EQ(job.Wait(), kSuccess) << job.Err();
  EXPECT_EQ(job.Out(), "127.0.1.1\n127.0.0.1\n");
}

TEST(RunTest, AddressOfAnotherHostIsRefused) {
  Job job({.arguments = Shell({"--master-addr", "192.0.2.1"}, "exit 0")});  // TEST-NET-1
  EXPECT_EQ(job.Wait(), Code(2));
  EXPECT_THAT(job.Err(), AllOf(HasSubstr("rankrun: --master-addr 192.0.2.1: "),
                               HasSubstr("Cannot assign requested address")));
}

TEST(RunTest, InheritedIgnoredChildSignalLosesNoExit) {
  Job job(
      {.arguments = Shell({"-n", "2"}, "exit 5"), .in_child = [] { signal(SIGCHLD, SIG_IGN); }});
  EXPECT_EQ(job.Wait(), Code(5));
}

TEST(RunTest, StandardErrorIsRelayedInWholeLines) {
  Job run({.arguments = Shell({"-n", "4"},
                              "i=0; while [ $i -lt 200 ]; do printf 'rank %s' $RANK >&2;"
                              "echo \" line $i\" >&2; i=$((i+1)); done")});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::multiset<std::string> expected;
  for (int rank = 0; rank < 4; ++rank) {
    for (int line = 0; line < 200; ++line) {
      expected.insert("rank " + std::to_string(rank) + " line " + std::to_string(line));
    }
  }
  EXPECT_EQ(Lines(run.Err()), expected);
}

TEST(RunTest, LastWordsWithoutANewlineAreShownAsTheyAre) {
  Job run({.arguments = Shell({}, "printf 'no newline' >&2; printf 'none' ")});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(run.Err(), "no newline");
  EXPECT_EQ(run.Out(), "none");
}

TEST(RunTest, ALineLeftOpenIsEndedBeforeWhatFollows) {
  Job run({.arguments = Shell({"-n", "2"}, "printf 'no newline' >&2; exit 3")});
  EXPECT_EQ(run.Wait(), Code(3));
  EXPECT_THAT(run.Err(), HasSubstr("no newline\nrankrun: attempt 0 failed"));
}

TEST(RunTest, PythonFilesRunUnderPythonUnbuffered) {
  ScratchFolder folder;
  std::string file = folder.Script("program.py", "");
  Job run({.arguments = {file, "one", "--two"}, .variables = {{"PYTHON_EXEC", "/bin/echo"}}});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(run.Out(), "-u " + file + " one --two\n");
}

TEST(RunTest, SignalOfTheUserReachesTheWorkers) {
  Job run({.arguments = Shell({"-n", "2"},
                              "trap 'echo got; exit 0' USR1; echo up; "
                              "while :; do sleep 0.01; done")});
  ASSERT_TRUE(WaitFor([&] { return Lines(run.Out()).count("up") == 2; }));
  run.Signal(SIGUSR1);
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(Lines(run.Out()).count("got"), 2U);
}

TEST(RunTest, KilledByASignalOfTheUserEndsByIt) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    Job run({.arguments = Shell({"-n", "2"}, "echo up; exec sleep 100")});
    ASSERT_TRUE(WaitFor([&] { return Lines(run.Out()).count("up") == 2; }));
    run.Signal(number);
    EXPECT_EQ(run.Wait(), KilledBy(number));
    EXPECT_THAT(run.Err(), HasSubstr("stopping the workers"));
    EXPECT_THAT(run.Err(), Not(HasSubstr("failed")));
  }
}

}  // namespace
}  // namespace rankrun::testing
