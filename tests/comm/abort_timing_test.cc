// How soon an Abort ends calls, and how long Destroy takes after it.

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using test::FreePort;
using test::WaitFor;
using testing::Each;
using testing::HasSubstr;

// Many times the documented values, because the machine may be loaded, and far below the
// time-outs.
constexpr milliseconds kOnThisRank{1000};
constexpr milliseconds kOnOthers{5000};
constexpr milliseconds kDestroyed{2000};

int64_t NanosecondsNow() { return MonotonicClock().Now().time_since_epoch().count(); }

// Returns "late" unless that many nanoseconds are within the limit.
std::string Late(int64_t took, milliseconds limit) {
  if (took <= std::chrono::nanoseconds(limit).count()) return "";
  return "late: " + std::to_string(took / 1'000'000) + " ms\n";
}

struct AbortTimingTest : testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Backends, AbortTimingTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(AbortTimingTest, CallsEndAtOnceAndDestroyWaitsForNoRank) {
  InSharedMemory<std::atomic<int64_t>> aborted_at;
  InSharedMemory<std::atomic<int>> begun;
  EXPECT_THAT(
      OnRanks(4,
              [&](int rank) {
                SetHostFor(GetParam(), rank);
                ProcessGroup& world = Init({.backend = GetParam()});
                std::vector<float> data(1000), received(1000);
                const GlobalRank next{(rank + 1) % 4};
                Work message = world.IRecv(received, next, 9);
                int64_t ended = 0;
                std::string error;
                std::jthread caller([&] {
                  *begun += 1;
                  // Rank 0 calls nothing, so that the others wait.
                  error = ErrorOf([&] {
                    return rank == 0 ? world.Recv(data, next, 8) : (world.AllReduce(data), 0);
                  });
                  ended = NanosecondsNow();
                });
                if (rank == 3) {
                  EXPECT_TRUE(WaitFor([&] { return begun->load() == 4; }));
                  *aborted_at = NanosecondsNow();
                  Abort(world);
                }
                caller.join();
                error += ErrorOf([&] { message.Wait(); });
                std::string text = Late(ended - *aborted_at, rank == 3 ? kOnThisRank : kOnOthers);
                int64_t before = NanosecondsNow();
                Destroy();
                if (rank == 3) text += Late(NanosecondsNow() - before, kDestroyed);
                return text + error;
              }),
      Each(testing::AllOf(HasSubstr("rank 3 aborted the group"), testing::Not(HasSubstr("late")))));
}

TEST(AbortedStoreTimingTest, DestroyOfTheRankThatServesTheStoreWaitsForNoRank) {
  const std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "?world_size=2";
  InSharedMemory<std::atomic<bool>> is_destroyed;
  auto rank = [&](int global_rank) {
    return [&, global_rank] {
      unsetenv("TORCHELASTIC_USE_AGENT_STORE");
      ProcessGroup& world = Init({.init_method = url + "&rank=" + std::to_string(global_rank)});
      if (global_rank == 1) {
        EXPECT_TRUE(WaitFor([&] { return is_destroyed->load(); }));
        return ErrorOf([&] { world.Barrier(); });
      }
      Abort(world);
      int64_t before = NanosecondsNow();
      Destroy();
      std::string text = Late(NanosecondsNow() - before, kDestroyed);
      *is_destroyed = true;
      return text;
    };
  };
  ChildProcess server(rank(0));
  ChildProcess other(rank(1));
  EXPECT_EQ(server.Text(), "");
  EXPECT_THAT(other.Text(), HasSubstr("rank 0 aborted the group"));
}

// The rank waits for the store once, and not for each group; its calls do not wait for it.
TEST(AbortedStoreTimingTest, ASilentStoreDelaysNoCallAndAbortOnlyOnce) {
  constexpr int kGroups = 20;
  InSharedMemory<std::atomic<int>> begun;
  InSharedMemory<std::atomic<bool>> is_silent;
  ServerProcess server;
  auto run = [&](int rank) {
    SetPlace(rank, 2, server.port());
    ProcessGroup& world = Init({.backend = "gloo"});
    for (int i = 0; i < kGroups; ++i) NewGroup({});
    std::vector<float> data(10);
    int64_t ended = 0;
    std::string error;
    std::jthread caller([&] {
      *begun += 1;
      error = ErrorOf([&] { world.Recv(data, GlobalRank{1 - rank}); });
      ended = NanosecondsNow();
    });
    if (rank == 0) {
      caller.join();
      return error;
    }
    EXPECT_TRUE(WaitFor([&] { return is_silent->load(); }));
    int64_t before = NanosecondsNow();
    Abort(world);
    std::string late = Late(NanosecondsNow() - before, milliseconds(500 * kGroups));
    caller.join();
    return error + Late(ended - before, kOnThisRank) + late;
  };
  ChildProcess other([&] { return run(0); });
  ChildProcess aborting([&] { return run(1); });
  EXPECT_TRUE(WaitFor([&] { return begun->load() == 2; }));
  server.Stop();
  *is_silent = true;
  EXPECT_THAT(aborting.Text(), testing::AllOf(HasSubstr("rank 1 aborted the group"),
                                              testing::Not(HasSubstr("late"))));
  EXPECT_THAT(other.Text(), HasSubstr("rank 1 aborted the group"));
}

}  // namespace
}  // namespace rankrun::comm
