// Forms in which a program may write the options of a call.

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::StartsWith;

TEST(CallFormsTest, AnyDurationIsATimeout) {
  EXPECT_EQ(Timeout(10s), 10'000ms);
  EXPECT_EQ(Timeout(1.5h), 90min);
  EXPECT_EQ(Timeout(0.5s), 500ms);
  EXPECT_EQ(Timeout(1us), 1ms) << "no call waits for less than it says";
  EXPECT_EQ(Timeout(1'000'001ns), 2ms);
  EXPECT_EQ(Timeout(-1s), -1000ms) << "which a call refuses";
  EXPECT_EQ(Timeout(std::nullopt), std::nullopt);
  EXPECT_EQ(Timeout(), std::nullopt);
  const double infinity = std::numeric_limits<double>::infinity();
  const Timeout longest = std::chrono::milliseconds::max() / 2;
  EXPECT_EQ(Timeout(std::chrono::hours::max()), longest);
  EXPECT_EQ(Timeout(std::chrono::duration<double>(infinity)), longest);
  EXPECT_EQ(Timeout(std::chrono::duration<float>(NAN)), longest);
}

// Returns the sum of `values` of all ranks, to compare the forms.
std::vector<double> SumsOfAllForms(ProcessGroup& world, const double mine) {
  std::vector<double> sums(8, mine);
  const Timeout timeout = 10s;
  world.AllReduce(sums[0], 10s);
  world.AllReduce(sums[1], ReduceOp::kMax, 0.5min);
  world.AllReduce(sums[2], ReduceOp::kSum, timeout);
  world.AllReduce(sums[3], ReduceOp::kSum, {10s});
  world.AllReduce(sums[4], ReduceOp::kSum, {.timeout = 10s, .async = true}).Wait();
  world.AllReduce(sums[5], kAsync).Wait();
  world.AllReduce(sums[6], ReduceOp::kMin, kAsync).Wait();
  world.Broadcast(sums[7], GlobalRank{1}, 10s);
  world.Barrier(10s);
  world.Barrier(kAsync).Wait();
  world.Barrier({.timeout = 1h, .async = true}).Wait();
  world.MonitoredBarrier(0.5min);
  return sums;
}

TEST(CallFormsTest, ADurationOrKAsyncStandsForTheOptions) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    return testing::PrintToString(SumsOfAllForms(world, world.global_rank() + 1));
  });
  EXPECT_THAT(texts, Each("{ 3, 2, 3, 3, 3, 3, 1, 2 }"));
}

TEST(CallFormsTest, TheTimeoutIsThatOfTheCall) {
  InSharedMemory<std::atomic<bool>> done;
  auto texts = InWorld(2, "tcp", [&](ProcessGroup& world) {
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.Barrier(0.05s); });
      *done = true;
    }
    while (!*done) std::this_thread::yield();
    return text;
  });
  EXPECT_THAT(texts[0], StartsWith("DistTimeoutError: Barrier #1 "));  // not SLOW
}

template <typename Input>
concept GathersLater = requires(ProcessGroup& world, std::vector<int>& output, Input&& input) {
  world.AllGatherInto(output, std::forward<Input>(input), kAsync);
  world.ReduceScatterFrom(output, std::forward<Input>(input), kAsync);
  world.AllToAllSingle(output, std::forward<Input>(input), kAsync);
};

TEST(CallFormsTest, AnInputThatEndsBeforeTheCallDoesNotCompile) {
  static_assert(GathersLater<const std::vector<int>&>);
  static_assert(GathersLater<std::span<const int>>, "its memory is that of another object");
  static_assert(!GathersLater<std::vector<int>>);
}

}  // namespace
}  // namespace rankrun::comm
