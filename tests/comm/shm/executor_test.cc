#include "comm/shm/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBufferBytes = 4096;

TEST(ShmExecutorTest, ASlowRankIsNotReportedAsStalled) {
  auto keys = std::make_shared<MemoryKeys>();
  std::latch all_have_come(3);
  RunRanks(3, [&](int rank) {
    MemoryStore store(keys);
    auto segment = Segment::Meet(ShmConfig(store, rank, 3), kBuffers * kBufferBytes);
    ASSERT_TRUE(segment) << segment.error().message;
    Waiter waiter(**segment, {});
    CallRendezvous calls(**segment, waiter, kBufferBytes);
    Executor executor(**segment, waiter, calls, kBufferBytes);
    all_have_come.arrive_and_wait();
    if (rank != 0) return;
    EXPECT_EQ(executor.Missing(milliseconds(1)), "ranks 1, 2 called it, but have not finished");
    EXPECT_EQ(executor.Missing(milliseconds(100)), "ranks 1, 2 called it, but make no progress");
  });
}

// Counter that is reached during the first check, which takes long; or never.
struct Slow final : WaitTarget {
  std::string Missing(Duration still) const override {
    still_ = still;
    return "nobody";
  }
  bool Needs(int) const override { return false; }
  std::optional<Error> CheckFailure(Duration waited) const override {
    waited_ = waited;
    if (!comes_) return std::nullopt;
    TimePoint until = MonotonicClock().Now() + kLong;
    while (MonotonicClock().Now() < until) std::this_thread::yield();
    word_ = 1;
    return std::nullopt;
  }

  static constexpr milliseconds kLong{20};
  bool comes_ = true;
  mutable std::atomic<uint64_t> word_ = 0;
  mutable Duration still_{};
  mutable Duration waited_{};
};

TEST(ShmExecutorTest, OnlyTheDurationOfTheWaitItselfCounts) {
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(2, [&](int rank) {
    MemoryStore store(keys);
    auto segment = Segment::Meet(ShmConfig(store, rank, 2), kBuffers * kBufferBytes);
    ASSERT_TRUE(segment) << segment.error().message;
    if (rank != 0) return;
    Waiter waiter(**segment, {});
    Slow slow;
    const Operation barrier{.kind = Operation::Kind::kBarrier, .number = 1};
    waiter.Begin({.operation = barrier, .timeout = milliseconds(1)});
    EXPECT_TRUE(waiter.Await(1, slow.word_, 1, slow));
    slow.comes_ = false;
    EXPECT_FALSE(waiter.Await(1, slow.word_, 2, slow));
    EXPECT_LE(slow.still_ + Slow::kLong, slow.waited_);
  });
}

TEST(ShmExecutorTest, CountersAreComparedAcrossTheirWrap) {
  constexpr uint64_t kMax = UINT64_MAX;
  EXPECT_TRUE(HasReached(kMax, kMax));
  EXPECT_TRUE(HasReached(0, kMax));
  EXPECT_TRUE(HasReached(5, kMax - 5));
  EXPECT_FALSE(HasReached(kMax, 0));
  EXPECT_FALSE(HasReached(kMax - 5, 5));
  EXPECT_FALSE(HasReached(4, 5));
}

TEST(ShmExecutorTest, StepsAreAwaitedAcrossTheWrapOfTheCounter) {
  RunShmRanks(3, [](ShmRank& me) {
    std::minstd_rand random(static_cast<uint32_t>(me.rank() + 1));
    for (int call = 0; call < 60; ++call) {
      std::vector<float> data(40'000, static_cast<float>(call + me.rank()));
      for (auto yields = random() % 8; yields > 0; --yields) std::this_thread::yield();
      auto done = me.Sum(data);
      ASSERT_TRUE(done) << done.error().message;
      ASSERT_EQ(data, std::vector<float>(data.size(), static_cast<float>(3 * call + 3)));
    }
  });
}

}  // namespace
}  // namespace rankrun::comm::shm
