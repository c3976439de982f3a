#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_timer.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

TEST(LoopTest, TasksOfOtherThreadsRunOnceOnTheLoopInTheirOrder) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 1000;
  Loop loop;
  std::vector<std::vector<int>> seen(kThreads);
  bool always_on_loop = true;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        loop.Post([&, t, i] {
          seen[t].push_back(i);
          always_on_loop &= loop.IsOnLoop();
        });
      }
    });
  }
  auto all_ran = [&] {
    for (auto& one : seen) {
      if (one.size() < kTasks) return false;
    }
    return true;
  };
  EXPECT_TRUE(loop.RunUntil(all_ran, test::kLong));
  for (std::thread& thread : threads) thread.join();
  test::RunReadyCallbacks(loop);
  EXPECT_TRUE(always_on_loop);
  for (auto& one : seen) {
    ASSERT_EQ(one.size(), static_cast<size_t>(kTasks));
    for (int i = 0; i < kTasks; ++i) EXPECT_EQ(one[static_cast<size_t>(i)], i);
  }
}

TEST(LoopTest, ATaskNeverRunsInsidePost) {
  Loop loop;
  bool ran = false;
  loop.Post([&] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_TRUE(loop.RunUntil([&] { return ran; }, test::kLong));
}

TEST(LoopTest, ATaskMayPostAnother) {
  Loop loop;
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 100) loop.Post(again);
  };
  loop.Post(again);
  EXPECT_TRUE(loop.RunUntil([&] { return depth == 100; }, test::kLong));
}

TEST(LoopTest, StopEndsRun) {
  Loop loop;
  int ran = 0;
  loop.Post([&] { ran += 1; });
  loop.Post([&] { loop.Stop(); });
  loop.Post([&] { ran += 1; });  // runs in the same turn
  loop.Run();
  EXPECT_EQ(ran, 2);
}

// libuv runs due timers, then waits for the next event.
TEST(LoopTest, StopInATimerDoesNotWaitForTheNextEvent) {
  Loop loop;
  Timer other(loop, [] {});
  other.Start(std::chrono::hours(1));
  Timer timer(loop, [&] { loop.Stop(); });
  timer.Start(milliseconds(0));
  loop.Run();
}

TEST(LoopTest, RunUntilSeesTheEffectOfATimerAtOnce) {
  Loop loop;
  bool fired = false;
  Timer timer(loop, [&] { fired = true; });
  timer.Start(milliseconds(0));
  TimePoint begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, test::kLong / 2);
}

TEST(LoopTest, RunCanBeRepeated) {
  Loop loop;
  for (int i = 0; i < 3; ++i) {
    loop.Post([&] { loop.Stop(); });
    loop.Run();
  }
}

TEST(LoopTest, RunBelongsToTheThreadThatCallsIt) {
  Loop loop;
  EXPECT_TRUE(loop.IsOnLoop());
  std::thread runner([&] { loop.Run(); });
  bool on_loop = false;
  loop.Post([&] {
    on_loop = loop.IsOnLoop();
    loop.Stop();
  });
  runner.join();
  EXPECT_TRUE(on_loop);
  EXPECT_FALSE(loop.IsOnLoop());
  EXPECT_TRUE(loop.RunUntil([] { return true; }, milliseconds(0)));  // takes the loop back
  EXPECT_TRUE(loop.IsOnLoop());
}

TEST(LoopTest, RunUntilReturnsAtOnceWhenTheConditionHolds) {
  Loop loop;
  EXPECT_TRUE(loop.RunUntil([] { return true; }, test::kLong));
}

TEST(LoopTest, RunUntilGivesUpAtTheTimeoutNotBefore) {
  Loop loop;
  TimePoint begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(loop.RunUntil([] { return false; }, milliseconds(20)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
}

TEST(LoopTest, TasksPostedAfterTheLastTurnAreDestroyedUnrun) {
  auto token = std::make_shared<int>();
  bool ran = false;
  {
    Loop loop;
    loop.Post([&ran, token] { ran = true; });
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(token.use_count(), 1);
}

TEST(LoopTest, AHandleDroppedJustBeforeTheLoopIsNoLeak) {
  Loop loop;
  Timer timer(loop, [] {});
  timer.Start(std::chrono::hours(1));
}

struct LoopDeathTest : testing::Test {
  LoopDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LoopDeathTest, ALeakedHandleAborts) {
  auto leak = [] {
    auto loop = std::make_unique<Loop>();
    auto* timer = new Timer(*loop, [] {});
    loop.reset();
    delete timer;
  };
  EXPECT_EXIT(leak(), testing::KilledBySignal(SIGABRT), "a handle outlives its event loop");
}

TEST_F(LoopDeathTest, AnotherThreadMayNotStopIt) {
  auto stop = [] {
    Loop loop;
    std::thread([&] { loop.Stop(); }).join();
  };
  EXPECT_EXIT(stop(), testing::KilledBySignal(SIGABRT), "called on another thread");
}

}  // namespace
}  // namespace rankrun
