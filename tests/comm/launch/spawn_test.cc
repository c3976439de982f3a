// Functions in new processes of this program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/distributed.h>
#include <rankrun/spawn.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SpawnTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef RANKRUN_SANITIZED_THREAD
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own, which a fork would lose";
#endif
  }
};

// Returns the failure that `act` throws, with rank -1 if it throws none.
SpawnFailure FailureIn(const std::function<void()>& act) {
  try {
    act();
  } catch (const SpawnError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "no SpawnError";
  return {.rank = -1};
}

TEST_F(SpawnTest, EachProcessHasItsRankAndTheCallersData) {
  InSharedMemory<std::array<std::atomic<int>, 3>> seen;
  std::vector<int> data{10, 20, 30};
  SpawnContext done = Spawn(
      [&](int rank) {
        (*seen)[static_cast<size_t>(rank)] = data[static_cast<size_t>(rank)] + rank;
      },
      3);
  EXPECT_EQ((*seen)[0], 10);
  EXPECT_EQ((*seen)[1], 21);
  EXPECT_EQ((*seen)[2], 32);
  EXPECT_THAT(done.pids(), SizeIs(3));
  EXPECT_TRUE(done.Join());
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(SpawnTest, TheyMeetInAFileAndReduce) {
  test::TempFolder folder;
  const std::string file = "file://" + folder.Path("meet");
  Spawn(
      [&](int rank) {
        ProcessGroup& world = Init({.init_method = file, .rank = rank, .world_size = 2});
        if (SumOf(world) != "2 of 2") throw std::runtime_error("a wrong sum");
        Destroy();
      },
      2);
}

TEST_F(SpawnTest, AnExceptionIsThrownInTheCaller) {
  auto act = [] {
    Spawn(
        [](int rank) {
          if (rank == 1) throw std::runtime_error("no data");
        },
        2);
  };
  SpawnFailure failure = FailureIn(act);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_EQ(failure.exception, "std::runtime_error: no data");
  EXPECT_THAT(ErrorOf(act),
              testing::MatchesRegex(
                  "DistError: Spawn: rank 1 \\(pid [0-9]+\\) threw std::runtime_error: no data"));
}

TEST_F(SpawnTest, AnExitCodeAndASignalNameTheRank) {
  EXPECT_THAT(ErrorOf([] { Spawn([](int) { _exit(7); }, 1); }),
              testing::MatchesRegex("DistError: Spawn: rank 0 .* ended with exit code 7"));
  auto act = [] {
    Spawn(
        [](int rank) {
          if (rank == 1) raise(SIGKILL);
        },
        2);
  };
  EXPECT_EQ(FailureIn(act).signal, SIGKILL);
  EXPECT_THAT(ErrorOf(act),
              testing::MatchesRegex("DistError: Spawn: rank 1 .* was killed by SIGKILL"));
}

TEST_F(SpawnTest, TheOthersGetSigtermThenSigkill) {
  InSharedMemory<std::atomic<int>> ready;
  signal(SIGTERM, SIG_IGN);  // the caller's; the processes die of it all the same
  SpawnContext context = Spawn(
      [&](int rank) {
        if (rank == 2) signal(SIGTERM, SIG_IGN);
        *ready += 1;
        while (rank == 0 && *ready < 3) usleep(100);
        if (rank == 0) _exit(3);
        for (;;) pause();
      },
      3, /*join=*/false);
  signal(SIGTERM, SIG_DFL);
  auto join = [&] { context.Join({}, milliseconds(100)); };
  EXPECT_EQ(FailureIn(join).exit_code, 3);
  EXPECT_TRUE(test::HasNoChild());
  EXPECT_EQ(FailureIn(join).rank, 0) << "the same for later calls";
}

std::atomic<int>* handled = nullptr;  // of the test below, whose handler it outlives

TEST_F(SpawnTest, TheCallersHandlerOfSigtermRunsInNoProcess) {
  InSharedMemory<std::atomic<int>> count;
  handled = &*count;
  signal(SIGTERM, [](int) { *handled += 1; });
  for (int i = 0; i < 100; ++i) {
    // Its destructor sends SIGTERM as early as possible.
    SpawnContext context = Spawn([](int) {}, 2, /*join=*/false);
  }
  signal(SIGTERM, SIG_DFL);
  EXPECT_EQ(*count, 0);
}

TEST_F(SpawnTest, ACauseComesBeforeALostConnection) {
  SpawnContext context = Spawn(
      [](int rank) {
        if (rank == 0) throw DistNetworkError("rank 1 is lost");
        _exit(4);
      },
      2, /*join=*/false);
  for (pid_t pid : context.pids()) {  // wait without taking the exit code
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  }
  EXPECT_EQ(FailureIn([&] { context.Join(); }).rank, 1);
}

TEST_F(SpawnTest, ACauseThatIsReapedLaterComesBeforeALostConnection) {
  InSharedMemory<std::atomic<pid_t>> first;
  auto act = [&] {
    Spawn(
        [&](int rank) {
          if (rank == 0) {
            *first = getpid();
            throw DistNetworkError("rank 1 is lost");
          }
          while (*first == 0 || kill(*first, 0) == 0) usleep(100);  // until it is reaped
          raise(SIGKILL);
        },
        2);
  };
  SpawnFailure failure = FailureIn(act);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.signal, SIGKILL);
}

TEST_F(SpawnTest, ALostConnectionWithoutACauseIsTheFailure) {
  auto act = [] {
    Spawn(
        [](int rank) {
          if (rank == 0) throw DistNetworkError("a store is lost");
          for (;;) pause();
        },
        2);
  };
  EXPECT_EQ(FailureIn(act).rank, 0);
}

TEST_F(SpawnTest, AJoinThatTimesOutReturnsFalseAndTheHandleEndsTheRest) {
  InSharedMemory<std::atomic<bool>> may_end;
  {
    SpawnContext context = Spawn(
        [&](int) {
          while (!*may_end) usleep(100);
        },
        2, /*join=*/false);
    EXPECT_FALSE(context.Join(milliseconds(1)));
    *may_end = true;
    EXPECT_TRUE(context.Join());
  }
  {
    SpawnContext context = Spawn(
        [](int) {
          for (;;) pause();
        },
        2, /*join=*/false);
  }
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(SpawnTest, AnExitCodeThatOtherCodeTookIsReplacedByTheRecord) {
  auto run = [](bool fails) {
    SpawnContext context = Spawn(
        [&](int) {
          if (fails) throw std::logic_error("x");
        },
        1, false);
    EXPECT_EQ(waitpid(context.pids()[0], nullptr, 0), context.pids()[0]);
    context.Join();
  };
  run(false);
  EXPECT_EQ(FailureIn([&] { run(true); }).exception, "std::logic_error: x");
}

TEST_F(SpawnTest, ACallerThatIgnoresSigchldHasTheRecord) {
  signal(SIGCHLD, SIG_IGN);
  Spawn([](int) {}, 2);
  auto throws = [](int rank) {
    if (rank == 1) throw std::logic_error("x");
  };
  SpawnFailure failure = FailureIn([&] { Spawn(throws, 2); });
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.exception, "std::logic_error: x");
  EXPECT_EQ(failure.exit_code, std::nullopt);
  signal(SIGCHLD, SIG_DFL);
}

TEST_F(SpawnTest, TheyEndWithTheirCaller) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  InSharedMemory<std::atomic<int>> started;
  ChildProcess caller([&] {
    SpawnContext context = Spawn(
        [&](int) {
          *started += 1;
          for (;;) pause();
        },
        2, /*join=*/false);
    for (;;) pause();
    return std::string();
  });
  ASSERT_TRUE(test::WaitFor([&] { return *started == 2; }));
  caller.Kill();
  caller.Text();
  EXPECT_TRUE(test::WaitFor([] {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return test::HasNoChild();
  }));
}

TEST_F(SpawnTest, AProcessThatCannotForkIsRefused) {
  std::latch may_end(1);
  std::jthread other([&] { may_end.wait(); });
  EXPECT_THAT(ErrorOf([] { Spawn([](int) {}); }),
              HasSubstr("Spawn: this process has 2 threads, of which a fork has one only: call "
                        "Spawn earlier, or start the program again by OwnProgram of launch.h"));
  may_end.count_down();
}

TEST_F(SpawnTest, AProcessWithAWorldIsRefused) {
  auto try_spawn = [] { return ErrorOf([] { Spawn([](int) {}); }); };
  auto texts = InWorld(1, "shm", [&](ProcessGroup&) { return try_spawn(); });
  EXPECT_THAT(texts, ElementsAre(HasSubstr("this process has a process group")));
  texts = OnRanks(1, [&](int) {
    Context context("side", {.backend = "shm"});
    return try_spawn();
  });
  EXPECT_THAT(texts, ElementsAre(HasSubstr("this process has a process group")));
}

TEST_F(SpawnTest, NoneRunsIfNotAllCanBeStarted) {
  ChildProcess few_descriptors([] {
    const int lowest = dup(0);
    close(lowest);
    const rlimit three{static_cast<rlim_t>(lowest) + 3, static_cast<rlim_t>(lowest) + 3};
    setrlimit(RLIMIT_NOFILE, &three);
    std::string text = ErrorOf([] { Spawn([](int) { pause(); }, 4); });
    return text + (test::HasNoChild() ? "" : ", but a process runs");
  });
  EXPECT_THAT(few_descriptors.Text(),
              testing::MatchesRegex(
                  "DistBackendError: Spawn: start rank [01] of 4: .*: Too many open files"));
}

TEST_F(SpawnTest, BadArgumentsAreRefused) {
  EXPECT_EQ(ErrorOf([] { Spawn([](int) {}, 0); }),
            "DistError: Spawn: processes is 0: want at least 1");
  EXPECT_EQ(ErrorOf([] { Spawn({}, 1); }), "DistError: Spawn: function is empty");
}

}  // namespace
}  // namespace rankrun::comm
