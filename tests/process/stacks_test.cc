// Stacks of processes: `rankctl stacks`, and those of workers that rankrun kills.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kStacked = test::Program("stacked");

constexpr const char* kSleeper = R"(
import time
class Trainer:
    def step(self):
        self.load_batch(
            [1, 2])
    def load_batch(self, indices):
        print("up", flush=True)
        time.sleep(1000)
def main():
    Trainer().step()
main()
)";

// Returns programs of CPython, of different versions: those in PATH and of pyenv.
std::set<std::string> Pythons() {
  namespace fs = std::filesystem;
  const char* path = std::getenv("PATH");
  std::istringstream list(path == nullptr ? "/usr/bin" : path);
  std::vector<fs::path> folders;
  for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  const char* home = std::getenv("HOME");
  std::error_code none;
  fs::directory_iterator versions(fs::path(home == nullptr ? "/" : home) / ".pyenv/versions", none);
  for (const auto& version : versions) folders.push_back(version.path() / "bin");
  std::set<std::string> found;
  for (const fs::path& folder : folders) {
    for (int minor = 8; minor <= 13; ++minor) {
      const fs::path file = fs::canonical(folder / ("python3." + std::to_string(minor)), none);
      if (!none && ReadText(file).starts_with("\x7f"
                                              "ELF"))
        found.insert(file);
    }
  }
  return found;
}

// Returns the state letter in /proc/<pid>/stat.
char StateOf(pid_t pid) {
  const std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos ? '?' : stat.at(end + 2);
}

struct StacksTimingTest : ::testing::Test {
  // Returns the output of `rankctl stacks`.
  std::string Stacks(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "stacks");
    Job rankctl({.arguments = arguments, .program = kRankctl});
    code = rankctl.Wait();
    EXPECT_EQ(rankctl.Err(), "");
    return rankctl.Out();
  }
  std::string StacksOf(const Job& job) { return Stacks({std::to_string(job.pid())}); }

  std::string WriteFile(const std::string& name, const std::string& text) const {
    std::ofstream(folder.Path(name)) << text;
    return folder.Path(name);
  }

  ScratchFolder folder;
  std::optional<ProcessExit> code;  // of the last rankctl
};

TEST_F(StacksTimingTest, AProcessThatWaitsForItsOwnMutexHasBothFrames) {
  Job job({.arguments = {"lock"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  ASSERT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
  const std::string text = StacksOf(job);
  EXPECT_THAT(text, ContainsRegex("pthread_mutex_lock.*\n +LockTwice.*\n +TakeTheLock.*\n +main"));
  EXPECT_EQ(code, Code(0));
  EXPECT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
}

TEST_F(StacksTimingTest, TheFileThatIsReadIsNamed) {
  const std::string fifo = folder.Path("data");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Job job({.arguments = {"read", fifo}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  ASSERT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
  EXPECT_THAT(StacksOf(job), AllOf(HasSubstr("in read(" + fifo + ")"), HasSubstr("ReadForever")));
}

TEST_F(StacksTimingTest, PythonFramesHaveNamesAndLinesInEachVersion) {
  const std::set<std::string> pythons = Pythons();
  if (pythons.empty()) GTEST_SKIP() << "there is no CPython 3.8 to 3.13";
  const std::string script = WriteFile("train.py", kSleeper);
  for (const std::string& python : pythons) {
    SCOPED_TRACE(python);
    Job job({.arguments = {script}, .program = python});
    ASSERT_TRUE(job.WaitForOut("up"));
    std::string text;
    auto is_asleep = [&] {  // no longer printing
      text = StacksOf(job);
      return text.find("train.py:9\n") != std::string::npos;
    };
    EXPECT_TRUE(WaitFor(is_asleep)) << text;
    EXPECT_THAT(text,
                ContainsRegex("load_batch at .*/train.py:9\n.*step at .*/train.py:[56]\n.*main "
                              "at .*/train.py:11\n.*<module> at .*/train.py:12\n"));
    EXPECT_THAT(text, Not(HasSubstr("_PyEval")));
  }
}

TEST_F(StacksTimingTest, AStoppedProcessStaysStopped) {
  Job job({.arguments = {"threads", "3"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  kill(job.pid(), SIGSTOP);
  ASSERT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'T'; }));
  EXPECT_THAT(StacksOf(job), AllOf(HasSubstr("state T"), HasSubstr("PauseForever")));
  EXPECT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'T'; }));
  kill(job.pid(), SIGCONT);
  EXPECT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
}

TEST_F(StacksTimingTest, AllOfFiftyThreadsAreShown) {
  Job job({.arguments = {"threads", "50"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  nlohmann::json json;
  auto are_complete = [&] {  // on a busy machine some may not stop in time
    json = nlohmann::json::parse(Stacks({"--json", std::to_string(job.pid())}));
    return !json.contains("note");
  };
  ASSERT_TRUE(WaitFor(are_complete)) << json["note"];
  EXPECT_EQ(json["pid"], job.pid());
  ASSERT_EQ(json["threads"].size(), 50u);
  EXPECT_EQ(json["threads"][0]["tid"], job.pid());
  for (const auto& thread : json["threads"]) {
    EXPECT_THAT(thread["native"].dump(), HasSubstr("PauseForever")) << thread;
  }
  EXPECT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
}

TEST_F(StacksTimingTest, ThreadsOutliveTheMainThread) {
  Job job({.arguments = {"orphaned"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  ASSERT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'Z'; }));
  EXPECT_THAT(StacksOf(job), HasSubstr("PauseForever"));
  EXPECT_EQ(code, Code(0));
}

TEST_F(StacksTimingTest, ProcessesWithoutAStackAreExplained) {
  Job ended({.arguments = {}, .program = "/bin/true"});
  ASSERT_TRUE(WaitFor([&] { return StateOf(ended.pid()) == 'Z'; }));
  EXPECT_THAT(Stacks({std::to_string(ended.pid()), "1073741823"}),
              AllOf(HasSubstr("it has ended"), HasSubstr("there is no such process")));
  EXPECT_EQ(code, Code(1));
}

TEST_F(StacksTimingTest, ATracedProcessIsReportedAsSuch) {
  Job job({.arguments = {"threads", "1"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  ASSERT_EQ(ptrace(PTRACE_SEIZE, job.pid(), nullptr, nullptr), 0);
  EXPECT_THAT(StacksOf(job), HasSubstr("pid " + std::to_string(getpid()) + " ("));
  EXPECT_THAT(StacksOf(job), HasSubstr("traces it already"));
  EXPECT_EQ(ptrace(PTRACE_INTERRUPT, job.pid(), nullptr, nullptr), 0);
  EXPECT_EQ(waitpid(job.pid(), nullptr, __WALL), job.pid());
  EXPECT_EQ(ptrace(PTRACE_DETACH, job.pid(), nullptr, nullptr), 0);
}

TEST_F(StacksTimingTest, ReadersOfOneProcessWaitForEachOther) {
  Job job({.arguments = {"threads", "3"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  constexpr size_t kReaders = 16;
  std::vector<std::string> arguments(kReaders + 1, std::to_string(job.pid()));
  arguments[0] = "60000";  // milliseconds
  Job reader({.arguments = arguments, .program = test::Program("rankrun-stacks")});
  EXPECT_EQ(reader.Wait(), Code(0));
  std::istringstream lines(reader.Out());
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_THAT(line, AllOf(HasSubstr("PauseForever"), Not(HasSubstr("\"note\""))));
  }
  EXPECT_EQ(count, kReaders);
}

TEST_F(StacksTimingTest, WithoutPermissionProcTellsAndAHintIsGiven) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to run the reader as another user";
  Job job({.arguments = {"threads", "1"}, .program = kStacked});
  ASSERT_TRUE(job.WaitForOut("up"));
  ASSERT_TRUE(WaitFor([&] { return StateOf(job.pid()) == 'S'; }));
  const std::string helper = folder.Path("rankrun-stacks");
  Job rankctl({.arguments = {"2000", std::to_string(job.pid())},
               .program = test::Program("rankrun-stacks"),
               .in_child = [] {
                 if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
               }});
  EXPECT_EQ(rankctl.Wait(), Code(0));
  EXPECT_THAT(rankctl.Out(), AllOf(HasSubstr("no permission to read its stack; to allow it"),
                                   HasSubstr(R"("state":"S")")));
}

TEST_F(StacksTimingTest, AWrongPidIsRefused) {
  Job rankctl({.arguments = {"stacks", "12x"}, .program = kRankctl});
  EXPECT_EQ(rankctl.Wait(), Code(2));
  EXPECT_THAT(rankctl.Err(), HasSubstr("\"12x\" is no rank and no pid"));
}

TEST_F(StacksTimingTest, ProcessesThatEndMeanwhileAreHarmless) {
  for (int round = 0; round < 20; ++round) {
    Job job({.arguments = {"threads", "20"}, .program = kStacked});
    ASSERT_TRUE(job.WaitForOut("up"));
    Job rankctl({.arguments = {"stacks", std::to_string(job.pid())}, .program = kRankctl});
    if (round % 2 == 0) usleep(static_cast<useconds_t>(round) * 1000);
    kill(job.pid(), SIGKILL);
    ASSERT_TRUE(rankctl.Wait().has_value());
    EXPECT_THAT(rankctl.Out(), HasSubstr("pid " + std::to_string(job.pid())));
  }
}

// --- workers that rankrun kills

TEST_F(StacksTimingTest, AWorkerThatIgnoresSigtermLeavesItsStack) {
  AdoptOrphans();
  const std::string script = WriteFile("worker.py", R"(
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
up = sys.argv[1]
def save_checkpoint():
    open(up, "w")
    time.sleep(1000)
if os.environ["RANK"] == "0":
    save_checkpoint()
while not os.path.exists(up):
    time.sleep(0.01)
sys.exit(3)
)");
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "there is no " << kPython;
  const std::string events = folder.Path("events");
  Job run({.arguments = {"-n", "2", "--shutdown-timeout", "4", "--log-dir", folder.Path("logs"),
                         "--events", events, "--no-python", kPython, script, folder.Path("up")}});
  EXPECT_EQ(run.Wait(), Code(3));
  EXPECT_THAT(run.Err(), ContainsRegex("then: rank 0 .*killed by SIGKILL, sent by rankrun\n"
                                       "    stack: .*save_checkpoint \\(worker.py:7\\)"));
  EXPECT_THAT(run.Err(), Not(HasSubstr("leftover")));
  const std::string text = ReadText(events);
  EXPECT_THAT(text, HasSubstr("\"save_checkpoint (worker.py:7)\""));
  const size_t at = text.find(R"("stacks_file":")");
  ASSERT_NE(at, std::string::npos);
  const size_t begin = at + std::string(R"("stacks_file":")").size();
  EXPECT_THAT(ReadText(text.substr(begin, text.find('"', begin) - begin)),
              HasSubstr("save_checkpoint at " + script + ":7"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(StacksTimingTest, AWorkerThatEndsLateEndsTheStacksWithIt) {
  AdoptOrphans();
  // It outlives the moment at which its stack is taken, 2 s before the end.
  Job run({.arguments = Shell({"-n", "2", "--shutdown-timeout", "4"},
                              "trap 'sleep 2.2; exit 0' TERM; if [ $RANK = 1 ]; then sleep 0.2; "
                              "exit 3; fi; while :; do sleep 0.01; done")});
  EXPECT_EQ(run.Wait(), Code(3));
  EXPECT_THAT(run.Err(), Not(HasSubstr("stack")));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

}  // namespace
}  // namespace rankrun::testing
