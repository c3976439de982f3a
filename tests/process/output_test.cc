// The output and the input of workers.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr ProcessExit kSuccess{.signaled = false, .value = 0};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

struct OutputTest : ::testing::Test {
  // Returns a log file of the only run in the folder.
  std::string Log(const std::string& name) const {
    for (const auto& run : std::filesystem::directory_iterator(folder.path())) {
      return ReadText(run.path() / name);
    }
    return "no run";
  }
  std::vector<std::string> WithLogs(std::vector<std::string> flags, const std::string& script) {
    flags.insert(flags.end(), {"--log-dir", folder.path()});
    return Shell(std::move(flags), script);
  }

  ScratchFolder folder;
};

TEST_F(OutputTest, TeeShowsAndKeepsAndAttemptsDoNotOverwriteOneAnother) {
  Job run({.arguments = WithLogs({"-n", "2", "--tee", "3", "--max-restarts", "1"},
                                 "echo out $RANK $TORCHELASTIC_RESTART_COUNT; echo err $RANK >&2\n"
                                 "exit $((1 - TORCHELASTIC_RESTART_COUNT))")});
  EXPECT_EQ(run.Wait(), kSuccess);
  for (std::string rank : {"0", "1"}) {
    for (std::string attempt : {"0", "1"}) {
      std::string place = "attempt_" + attempt + "/" + rank;
      std::string line = "out " + rank + " " + attempt + "\n";
      // The failure of the other worker may have stopped this one before its output.
      std::string kept = Log(place + "/stdout.log");
      EXPECT_TRUE(kept == line || (attempt == "0" && kept.empty())) << kept;
      EXPECT_EQ(run.Out().find(line) != std::string::npos, !kept.empty());
    }
    EXPECT_EQ(Log("attempt_1/" + rank + "/stderr.log"), "err " + rank + "\n");
  }
}

TEST_F(OutputTest, RedirectedOutputIsInTheFileOnly) {
  Job run({.arguments = WithLogs({"--redirects", "3"}, "echo out; echo err >&2")});
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(run.Out() + run.Err(), "");
  EXPECT_EQ(Log("attempt_0/0/stdout.log"), "out\n");
  EXPECT_EQ(Log("attempt_0/0/stderr.log"), "err\n");
}

TEST_F(OutputTest, AFolderThatCannotBeMadeEndsWithTwo) {
  Job run({.arguments = Shell({"--log-dir", "/proc/no/logs"}, "echo started")});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 2}));
  EXPECT_THAT(run.Err(), HasSubstr("rankrun: --log-dir /proc/no/logs: create the folder"));
  EXPECT_EQ(run.Out(), "");
}

TEST_F(OutputTest, EveryLineOfEveryRankIsWholeAndHasItsPrefix) {
  Job run({.arguments = Shell({"-n", "4", "--prefix", "<${rank}> "},
                              "for i in $(seq 300); do printf 'one '; echo two $i; "
                              "echo err $i >&2; done")});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::vector<std::string> lines = LinesOf(run.Out());
  EXPECT_EQ(lines.size(), 1200U);
  for (const std::string& line : lines) {
    ASSERT_THAT(line, MatchesRegex("<[0-3]> one two [0-9]+"));
  }
  lines = LinesOf(run.Err());
  EXPECT_EQ(lines.size(), 1200U);
  for (const std::string& line : lines) ASSERT_THAT(line, MatchesRegex("<[0-3]> err [0-9]+"));
}

TEST_F(OutputTest, FiftyMegabytesWithoutANewlineTakeLittleMemoryAndStayWhole) {
  Job run({.arguments = Shell({"-n", "2", "--prefix", "none"},
                              "head -c 50000000 /dev/zero | tr '\\0' $RANK")});
  EXPECT_EQ(run.Wait(milliseconds(60'000)), kSuccess);
  std::string out = run.Out();
  EXPECT_EQ(std::ranges::count(out, '0'), 50'000'000);
  EXPECT_EQ(std::ranges::count(out, '1'), 50'000'000);
  for (const std::string& line : LinesOf(out + "\n")) {
    ASSERT_TRUE(line.find_first_not_of('0') == std::string::npos ||
                line.find_first_not_of('1') == std::string::npos);
  }
}

TEST_F(OutputTest, AGrandchildWithOpenStandardOutputHoldsNothingUp) {
  Job run({.arguments = Shell({}, "sleep 100 & echo done")});
  EXPECT_EQ(run.Wait(milliseconds(10'000)), kSuccess);
  EXPECT_EQ(run.Out(), "done\n");
}

TEST_F(OutputTest, AMegabyteJustBeforeTheEndIsNotLost) {
  for (const char* flag : {"-n2", "--pty"}) {
    Job run({.arguments = Shell({flag, "--prefix", "none"}, "seq 1 100000; exit 7")});
    EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 7}));
    EXPECT_NE(run.Out().find("\n100000\n"), std::string::npos);
  }
}

TEST_F(OutputTest, AClosedStandardOutputHarmsNothingAndIsSaidOnce) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd writer(ends[1]);
  close(ends[0]);
  Job run({.arguments = Shell({"-n", "2"}, "seq 1 50000; echo done >&2"),
           .in_child = [&] { dup2(writer.get(), 1); }});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::string err = run.Err();
  EXPECT_THAT(err, HasSubstr("rankrun: write to standard output: Broken pipe; worker output "
                             "is lost from here on\n"));
  EXPECT_EQ(LinesOf(err).size(), 3U) << err;
}

// A limit of the file size has the effect of a full disk on this process alone.
TEST_F(OutputTest, AFullDiskHarmsNothingAndItsLossIsSaid) {
  auto limit = [] {
    rlimit small{.rlim_cur = 100'000, .rlim_max = 100'000};
    setrlimit(RLIMIT_FSIZE, &small);
  };
  Job run({.arguments = WithLogs({"-n", "2", "--redirects", "1"}, "seq 1 100000; echo done >&2"),
           .in_child = limit});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::string err = run.Err();
  for (const char* rank : {"0", "1"}) {
    std::string file = "/attempt_0/" + std::string(rank) + "/stdout.log";
    EXPECT_THAT(err, AllOf(HasSubstr("rank " + std::string(rank) + ": 488895 bytes of /"),
                           HasSubstr(file + " are lost: File too large")));
  }
  EXPECT_LE(LinesOf(err).size(), 6U) << "a failure is told once, or with the loss: " << err;
}

TEST_F(OutputTest, ATinyPoolOfTheUsersDoesNotJoinTheOutputs) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  Job run({.arguments = Shell({},
                              "seq 1 100000; echo $UV_THREADPOOL_SIZE threads >&2;"
                              " echo more; for i in 1 2 3 4 5; do echo $i >&2; sleep 0.1; done"),
           .variables = {{"UV_THREADPOOL_SIZE", "1"}},
           .in_child = [&] { dup2(writer.get(), 1); }});
  writer.Reset();
  EXPECT_TRUE(run.WaitForErr("1 threads\n")) << run.Err();
  EXPECT_TRUE(run.WaitForErr("\n5\n")) << "standard output, which nobody reads, held it up";
  std::vector<char> buffer(65536);
  while (read(reader.get(), buffer.data(), buffer.size()) > 0) {
  }
  EXPECT_EQ(run.Wait(), kSuccess);
}

TEST_F(OutputTest, ASlowReaderOfStandardOutputLosesNothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  Job run({.arguments = WithLogs({"-n", "2", "--tee", "1", "--prefix", "none"}, "seq 1 1000000"),
           .in_child = [&] { dup2(writer.get(), 1); }});
  writer.Reset();
  std::vector<char> buffer(4096);
  size_t total = 0;
  for (ssize_t count; (count = read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    total += static_cast<size_t>(count);
  }
  EXPECT_EQ(total, 2 * 6'888'896U);
  EXPECT_EQ(run.Wait(), kSuccess);
  EXPECT_EQ(Log("attempt_0/1/stdout.log").size(), 6'888'896U);
}

TEST_F(OutputTest, LogsAreRotatedAtLines) {
  Job run({.arguments = WithLogs({"--redirects", "1", "--log-limit", "100K"}, "seq 1 100000")});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::string before = Log("attempt_0/0/stdout.log.1");
  std::string last = Log("attempt_0/0/stdout.log");
  EXPECT_LE(before.size(), 102'400U);
  EXPECT_GT(before.size(), 102'000U);
  EXPECT_TRUE(before.ends_with('\n'));
  EXPECT_TRUE(last.ends_with("\n100000\n"));
  EXPECT_EQ(std::stoi(LinesOf(before).back()) + 1, std::stoi(LinesOf(last).front()));
}

TEST_F(OutputTest, FilteredLinesOfAllRanksAreInOneFile) {
  Job run({.arguments = WithLogs({"-n", "2", "--tee", "1", "--duplicate-stdout-filters", "loss"},
                                 "echo loss=1; echo other")});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::vector<std::string> lines = LinesOf(Log("attempt_0/filtered_stdout.log"));
  EXPECT_EQ(lines.size(), 2U);
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("loss=1"));
}

// Gives rankrun a new terminal as its standard output.
struct TerminalTest : OutputTest {
  TerminalTest() {
    master.Reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    grantpt(master.get());
    unlockpt(master.get());
    slave.Reset(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios settings;
    tcgetattr(slave.get(), &settings);
    cfmakeraw(&settings);
    tcsetattr(slave.get(), TCSANOW, &settings);
  }
  // Returns the output up to and including `text`.
  std::string ReadUntil(const std::string& text) {
    std::string shown;
    char buffer[4096];
    while (shown.find(text) == std::string::npos) {
      ssize_t count = read(master.get(), buffer, sizeof buffer);
      if (count <= 0) return shown + "[the end]";
      shown.append(buffer, static_cast<size_t>(count));
    }
    return shown;
  }
  std::function<void()> OnTerminal() {
    return [this] { dup2(slave.get(), 1); };
  }

  Fd master;
  Fd slave;
};

TEST_F(TerminalTest, AWorkersStandardOutputIsATerminalWhereOursIs) {
  Job run({.arguments = Shell({}, "[ -t 1 ] && [ ! -t 2 ] && echo terminal; echo done"),
           .in_child = OnTerminal()});
  EXPECT_EQ(ReadUntil("done\n"), "terminal\ndone\n");
  EXPECT_EQ(run.Wait(), kSuccess);
}

TEST_F(TerminalTest, WorkersLearnThatItsSizeHasChanged) {
  Job run({.arguments = Shell({},
                              "trap 'stty size <&1; exit 0' WINCH; echo up; "
                              "while :; do sleep 0.01; done"),
           .in_child = OnTerminal()});
  EXPECT_EQ(ReadUntil("up\n"), "up\n");
  winsize size{.ws_row = 33, .ws_col = 77, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(master.get(), TIOCSWINSZ, &size), 0);
  run.Signal(SIGWINCH);
  EXPECT_EQ(ReadUntil("77\n"), "33 77\n");
  EXPECT_EQ(run.Wait(), kSuccess);
}

TEST_F(TerminalTest, AStoppedTerminalHoldsUpNoWorkerAndLosesNoLine) {
  ASSERT_EQ(tcflow(slave.get(), TCOOFF), 0);
  Job run({.arguments = Shell({}, "seq 1 20000; touch " + folder.Path("written")),
           .in_child = OnTerminal()});
  EXPECT_TRUE(WaitFor([&] { return std::filesystem::exists(folder.Path("written")); }));
  EXPECT_EQ(run.Wait(milliseconds(200)), std::nullopt) << "its last lines wait";
  ASSERT_EQ(tcflow(slave.get(), TCOON), 0);
  EXPECT_EQ(LinesOf(ReadUntil("\n20000\n")).size(), 20'000U);
  EXPECT_EQ(run.Wait(), kSuccess);
}

TEST_F(OutputTest, InputGoesToWhomItIsMeantFor) {
  auto read = [](const std::string& who) {
    Job run(
        {.arguments = Shell({"-n", "2", "--prefix", "none", "--stdin", who}, "echo $RANK $(cat)"),
         .stdin_text = "word"});
    EXPECT_EQ(run.Wait(), kSuccess);
    std::vector<std::string> lines = LinesOf(run.Out());
    std::ranges::sort(lines);
    return lines;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(read("0"), (Lines{"0 word", "1"}));
  EXPECT_EQ(read("1"), (Lines{"0", "1 word"}));
  EXPECT_EQ(read("all"), (Lines{"0 word", "1 word"}));
  EXPECT_EQ(read("none"), (Lines{"0", "1"}));
}

}  // namespace
}  // namespace rankrun::testing
