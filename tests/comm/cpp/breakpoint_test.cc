// Breakpoint, without a launcher. The debugger is a process that traces its parent, the
// rank that stops.

#include <gmock/gmock.h>
#include <sys/ptrace.h>

#include <rankrun/diagnosis/breakpoint.h>
#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "base/log.h"
#include "base/status/activity.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr GlobalRank kHeld{1};

// Attaches to `process` once it lets us and waits until it stops by SIGTRAP. Returns false
// if it ends before.
bool AwaitTrap(pid_t process) {
  while (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) {
    if (kill(process, 0) != 0) return false;
    usleep(1000);
  }
  for (int status = 0; waitpid(process, &status, __WALL) == process;) {
    if (!WIFSTOPPED(status)) return false;
    if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0) return true;
    ptrace(PTRACE_CONT, process, nullptr, WSTOPSIG(status));
  }
  return false;
}

// Returns what a process does that debugs this one: run `at_stop` when this one has stopped.
auto Debug(std::function<void(pid_t process)> at_stop) {
  return [at_stop = std::move(at_stop), process = getpid()]() -> std::string {
    if (!AwaitTrap(process)) return "has not stopped";
    at_stop(process);
    return "has stopped";
  };
}

void LetGo(pid_t process) { ptrace(PTRACE_DETACH, process, nullptr, nullptr); }

// Waits until the worker of this page has shown `what` for longer than `time`.
void AwaitActivity(const StatusPage& page, const std::string& what, Duration time = {}) {
  for (;;) {
    const WorkerActivity activity = ReadActivity(page);
    if (activity.what == what && activity.lasted >= time) return;
    usleep(1000);
  }
}

std::vector<StatusPage> MakePages(int count) {
  std::vector<StatusPage> pages;
  for (int i = 0; i < count; ++i) pages.push_back(*StatusPage::Create());
  return pages;
}

const StatusPage& Of(const std::vector<StatusPage>& pages, int rank) {
  return pages[static_cast<size_t>(rank)];
}

struct BreakpointTest : testing::TestWithParam<const char*> {
  // Runs `body` on 3 ranks in a world, with status pages.
  std::vector<std::string> OnAll(const std::function<std::string(int rank)>& body,
                                 seconds timeout = seconds(60)) {
    return OnRanks(3, [&](int rank) {
      UsePage(Of(pages, rank));
      Init({.timeout = timeout, .backend = GetParam()});
      return body(rank);
    });
  }

  std::vector<StatusPage> pages = MakePages(3);
};

INSTANTIATE_TEST_SUITE_P(Backends, BreakpointTest, testing::Values("shm", "tcp", "gloo"),
                         NameOfBackend);

TEST_P(BreakpointTest, TheOthersWaitLongerThanTheTimeOutUntilTheRankGoesOn) {
  constexpr seconds kTimeout{3};
  auto texts = OnAll(
      [&](int rank) {
        const std::string wait = "waiting for the end of the breakpoint of rank 1";
        auto debug = [&](pid_t process) {
          AwaitActivity(Of(pages, 0), wait, kTimeout + milliseconds(100));
          AwaitActivity(Of(pages, 2), wait, kTimeout + milliseconds(100));
          LetGo(process);
        };
        std::optional<ChildProcess> debugger;
        if (rank == kHeld.value) debugger.emplace(Debug(debug));
        Breakpoint(kHeld);
        const std::string text = debugger ? debugger->Text() + ", " : "";
        return text + SumOf(World());
      },
      kTimeout);
  EXPECT_THAT(texts, ElementsAre("3 of 3", "has stopped, 3 of 3", "3 of 3"));
}

TEST_P(BreakpointTest, TheDeathOfTheRankEndsTheWaits) {
  auto texts = OnAll([&](int rank) {
    std::optional<ChildProcess> debugger;
    if (rank == kHeld.value) {
      debugger.emplace(Debug([](pid_t process) { kill(process, SIGKILL); }));
    }
    return ErrorOf([] { Breakpoint(kHeld); });
  });
  EXPECT_EQ(texts[1], "");
  for (int rank : {0, 2}) {
    EXPECT_THAT(texts[static_cast<size_t>(rank)],
                AllOf(StartsWith("DistNetworkError: Breakpoint: "), HasSubstr("rank 1")));
  }
}

// Runs `body` on 2 ranks in a world, without an agent.
std::vector<std::string> OnBoth(const std::function<std::string(int rank)>& body) {
  return OnRanks(2, [&](int rank) {
    Init({.timeout = seconds(60), .backend = "shm"});
    return body(rank);
  });
}

// Returns how often this rank has called when it stops, as "stopped in call 3".
std::string FirstStop(const std::function<void(int call)>& call, int calls) {
  InSharedMemory<int> number;
  InSharedMemory<int> at_stop;
  ChildProcess debugger(Debug([&](pid_t process) {
    *at_stop = *number;
    LetGo(process);
  }));
  for (*number = 1; *number <= calls; ++*number) call(*number);
  debugger.Text();
  return "stopped in call " + std::to_string(*at_stop);
}

TEST(BreakpointCallsTest, TheFirstCallsOfAPlaceAreIgnored) {
  auto texts = OnBoth([](int rank) -> std::string {
    auto call = [](int) { Breakpoint(kHeld, 2); };
    auto two_places = [](int number) {
      if (number % 2 == 0) return Breakpoint(kHeld, 2);
      Breakpoint(kHeld, 3);
    };
    if (rank == kHeld.value) {
      const std::string first = FirstStop(call, 3);
      return first + ", " + FirstStop(two_places, 6);
    }
    for (int i = 1; i <= 3; ++i) call(i);
    for (int i = 1; i <= 6; ++i) two_places(i);
    return "";
  });
  EXPECT_THAT(texts, ElementsAre("", "stopped in call 3, stopped in call 6"));
}

TEST(BreakpointCallsTest, DifferentArgumentsAreAnErrorOfAllRanksThatListsThem) {
  auto texts = OnBoth([](int rank) {
    auto ranks_differ = [rank] { Breakpoint(GlobalRank{rank}); };
    auto skips_differ = [rank] { Breakpoint(kHeld, rank * 5); };
    const std::string first = ErrorOf(ranks_differ);
    return first + "\n" + ErrorOf(skips_differ);
  });
  EXPECT_THAT(texts, Each("DistMismatchError: Breakpoint: rank 0 wants a breakpoint of rank 0 "
                          "that skips 0 calls; rank 1 wants a breakpoint of rank 1 that skips 0 "
                          "calls\n"
                          "DistMismatchError: Breakpoint: rank 0 wants a breakpoint of rank 1 "
                          "that skips 0 calls; rank 1 wants a breakpoint of rank 1 that skips 5 "
                          "calls"));
}

TEST(BreakpointCallsTest, WrongArgumentsAreAnErrorOfAllRanks) {
  EXPECT_EQ(ErrorOf([] { Breakpoint(); }),
            "DistError: Breakpoint: there is no world process group: call Init() first");
  auto texts = OnBoth([](int rank) {
    const std::string first = ErrorOf([rank] { Breakpoint(GlobalRank{rank * 2}); });
    return first + "\n" + ErrorOf([rank] { Breakpoint(kHeld, -rank); });
  });
  const std::string rank = "rank is 2: want 0 to 1";
  const std::string skip = "skip is -1: want a number of calls";
  const std::string by_one = "DistError: Breakpoint: rank 1 refused it: ";
  const std::string own = "DistError: Breakpoint: ";
  EXPECT_THAT(texts,
              ElementsAre(by_one + rank + "\n" + by_one + skip, own + rank + "\n" + own + skip));
}

// Nobody would notice the death of a rank.
TEST(BreakpointCallsTest, InABrokenWorldWithoutAnAgentNoRankWaits) {
  SetLogSink([](std::string_view) {});
  auto texts = OnBoth([](int rank) {
    const std::string first =
        rank == 0 ? ErrorOf([] { SumOf(World()); }) : ErrorOf([] { World().Barrier(); });
    return first.empty() ? "no mismatch" : ErrorOf([] { Breakpoint(kHeld); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("Breakpoint: the process group is broken: ")));
}

TEST(BreakpointCallsTest, AProcessThatIsTracedAlreadyStopsAtOnce) {
  auto texts = OnBoth([](int rank) -> std::string {
    std::optional<ChildProcess> debugger;
    if (rank == kHeld.value) {
      debugger.emplace(Debug([](pid_t process) {
        ptrace(PTRACE_CONT, process, nullptr, nullptr);
        int status = 0;
        waitpid(process, &status, __WALL);
        LetGo(process);
      }));
    }
    Breakpoint(kHeld);
    Breakpoint(kHeld);
    return debugger ? debugger->Text() : "";
  });
  EXPECT_THAT(texts, ElementsAre("", "has stopped"));
}

TEST(BreakpointCallsTest, TheSignalOfTheDebuggerGetsItsHandlerBack) {
  auto texts = OnBoth([](int rank) -> std::string {
    if (rank != kHeld.value) {
      Breakpoint(kHeld);
      return "";
    }
    auto handler = [](int) {};
    signal(SIGTRAP, handler);
    const std::string stop = FirstStop([](int) { Breakpoint(kHeld); }, 1);
    return signal(SIGTRAP, SIG_DFL) == +handler ? stop : "lost";
  });
  EXPECT_EQ(texts[1], "stopped in call 1");
}

TEST(BreakpointCallsTest, WithoutAnAgentALogLineSaysHowToAttach) {
  auto texts = OnBoth([](int rank) -> std::string {
    std::string logged;
    std::optional<ChildProcess> debugger;
    SetLogSink([&](std::string_view line) {
      logged = line;
      debugger.emplace(Debug(LetGo));
    });
    Breakpoint(kHeld, 0, "train.cc", 12);
    if (rank != kHeld.value) return logged;
    const std::string end = ": gdb -p " + std::to_string(getpid()) + " -ex continue\n";
    return logged.ends_with(end) ? logged + debugger->Text() : "wrong: " + logged;
  });
  EXPECT_EQ(texts[0], "");
  EXPECT_THAT(texts[1], StartsWith("rankrun: warning: rank 1 has stopped at the breakpoint "
                                   "train.cc:12; to go on, attach a debugger on host "));
}

// As an agent, reads the line of a rank and reports that its debugger has ended.
TEST(BreakpointCallsTest, TheRankGoesOnWhenTheAgentsDebuggerHasEnded) {
  StatusPage page = *StatusPage::Create();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]);
  ChildProcess agent([&] {
    std::string line(100, '\0');
    line.resize(static_cast<size_t>(read(ends[0], line.data(), line.size())));
    page.CountDebuggerEnd();
    return line;
  });
  auto texts = OnRanks(2, [&](int rank) {
    if (rank == kHeld.value) UsePage(page);
    setenv("RANKRUN_BREAKPOINT_PIPE", path.c_str(), 1);
    Init({.timeout = seconds(60), .backend = "shm"});
    Breakpoint(kHeld);
    return std::to_string(getpid());
  });
  EXPECT_EQ(agent.Text(), "stopped 1 " + texts[1] + " 1\n");
  close(ends[0]);
  close(ends[1]);
}

TEST(BreakpointCallsTest, InCTheMacroPassesTheCallersPlace) {
  auto texts = OnBoth([](int rank) -> std::string {
    auto call = [](int) { rankrun_breakpoint(1, 1); };
    if (rank == kHeld.value) return FirstStop(call, 2);
    call(1);
    call(2);
    return rankrun_breakpoint_at(1, 0, nullptr, 1) == RANKRUN_INVALID ? rankrun_last_error() : "";
  });
  EXPECT_THAT(texts, ElementsAre("rankrun_breakpoint_at: file is NULL", "stopped in call 2"));
}

}  // namespace
}  // namespace rankrun::comm
