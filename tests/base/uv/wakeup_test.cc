#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_wakeup.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

TEST(WakeupTest, CallsOnTheLoopsThread) {
  Loop loop;
  bool woken = false;
  Wakeup wakeup(loop, [&] { woken = loop.IsOnLoop(); });
  std::thread other([&] { wakeup.Wake(); });
  EXPECT_TRUE(loop.RunUntil([&] { return woken; }, test::kLong));
  other.join();
}

TEST(WakeupTest, NeverCallsInsideWake) {
  Loop loop;
  bool woken = false;
  Wakeup wakeup(loop, [&] { woken = true; });
  wakeup.Wake();
  EXPECT_FALSE(woken);
  EXPECT_TRUE(loop.RunUntil([&] { return woken; }, test::kLong));
}

TEST(WakeupTest, IsSilentUnlessWoken) {
  Loop loop;
  bool woken = false;
  Wakeup wakeup(loop, [&] { woken = true; });
  EXPECT_FALSE(loop.RunUntil([&] { return woken; }, milliseconds(10)));
}

// Some call after Wake sees what the thread wrote before it: no wake-up is
// lost, however the two race.
TEST(WakeupTest, ACallFollowsEveryWake) {
  constexpr int kThreads = 3;
  constexpr int kWakes = 2000;
  Loop loop;
  std::atomic<int> written = 0;
  int seen = 0;
  Wakeup wakeup(loop, [&] { seen = written.load(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kWakes; ++j) {
        written += 1;
        wakeup.Wake();
      }
    });
  }
  EXPECT_TRUE(loop.RunUntil([&] { return seen == kThreads * kWakes; }, test::kLong));
  for (std::thread& thread : threads) thread.join();
}

TEST(WakeupTest, ADroppedOneIsSilent) {
  Loop loop;
  bool woken = false;
  {
    Wakeup wakeup(loop, [&] { woken = true; });
    wakeup.Wake();
  }
  EXPECT_FALSE(loop.RunUntil([&] { return woken; }, milliseconds(10)));
}

}  // namespace
}  // namespace rankrun
