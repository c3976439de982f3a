#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_timer.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

TEST(TimerTest, NeverFiresEarly) {
  Loop loop;
  for (int i = 0; i < 200; ++i) {
    nanoseconds delay = microseconds(37 * i) + nanoseconds(i);
    bool fired = false;
    TimePoint due = steady_clock::now() + delay;
    TimePoint at;
    Timer timer(loop, [&] {
      at = steady_clock::now();
      fired = true;
    });
    timer.Start(delay);
    ASSERT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
    ASSERT_GE(at, due) << "delay of " << delay.count() << " ns";
  }
}

// The loop's cached time is old in a long callback.
TEST(TimerTest, NeverFiresEarlyWhenTheLoopWasBusy) {
  Loop loop;
  bool fired = false;
  TimePoint due;
  TimePoint at;
  Timer timer(loop, [&] {
    at = steady_clock::now();
    fired = true;
  });
  loop.Post([&] {
    TimePoint busy_until = steady_clock::now() + milliseconds(30);
    while (steady_clock::now() < busy_until) {
    }
    due = steady_clock::now() + milliseconds(20);
    timer.Start(milliseconds(20));
  });
  ASSERT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
  EXPECT_GE(at, due);
}

// Each turn of the loop reads the clock and drops the fraction of a
// millisecond.
TEST(TimerTest, NeverFiresEarlyWhenTheLoopKeepsTurning) {
  Loop loop;
  std::function<void()> turn = [&] { loop.Post(turn); };
  loop.Post(turn);
  for (int i = 0; i < 100; ++i) {
    bool fired = false;
    TimePoint at;
    Timer timer(loop, [&] {
      at = steady_clock::now();
      fired = true;
    });
    TimePoint due = steady_clock::now() + milliseconds(1 + i % 2);
    timer.Start(milliseconds(1 + i % 2));
    ASSERT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
    ASSERT_GE(at, due);
  }
}

TEST(TimerTest, FiresOnce) {
  Loop loop;
  int fired = 0;
  Timer timer(loop, [&] { fired += 1; });
  timer.Start(milliseconds(0));
  ASSERT_TRUE(loop.RunUntil([&] { return fired > 0; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([&] { return fired > 1; }, milliseconds(10)));
}

TEST(TimerTest, NoDelayIsSoonButNotInsideStart) {
  Loop loop;
  bool fired = false;
  Timer timer(loop, [&] { fired = true; });
  timer.Start(milliseconds(0));
  EXPECT_FALSE(fired);
  ASSERT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
}

TEST(TimerTest, ANegativeDelayIsNone) {
  Loop loop;
  bool fired = false;
  Timer timer(loop, [&] { fired = true; });
  timer.Start(milliseconds(-5));
  EXPECT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
}

TEST(TimerTest, ASecondStartReplacesTheFirst) {
  Loop loop;
  std::vector<TimePoint> fired;
  Timer timer(loop, [&] { fired.push_back(steady_clock::now()); });
  timer.Start(milliseconds(1));
  TimePoint due = steady_clock::now() + milliseconds(30);
  timer.Start(milliseconds(30));
  ASSERT_TRUE(loop.RunUntil([&] { return !fired.empty(); }, test::kLong));
  EXPECT_GE(fired[0], due);
  EXPECT_FALSE(loop.RunUntil([&] { return fired.size() > 1; }, milliseconds(40)));
}

TEST(TimerTest, ASecondStartMayBeSooner) {
  Loop loop;
  bool fired = false;
  Timer timer(loop, [&] { fired = true; });
  timer.Start(std::chrono::hours(1));
  timer.Start(milliseconds(1));
  EXPECT_TRUE(loop.RunUntil([&] { return fired; }, test::kLong));
}

TEST(TimerTest, StoppedItIsSilent) {
  Loop loop;
  bool fired = false;
  Timer timer(loop, [&] { fired = true; });
  timer.Start(milliseconds(0));
  timer.Stop();
  timer.Stop();
  EXPECT_FALSE(loop.RunUntil([&] { return fired; }, milliseconds(10)));
}

TEST(TimerTest, ItsCallbackMayStartItAgain) {
  Loop loop;
  int fired = 0;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(loop, [&] {
    if (++fired < 5) timer->Start(milliseconds(1));
  });
  timer->Start(milliseconds(1));
  EXPECT_TRUE(loop.RunUntil([&] { return fired == 5; }, test::kLong));
}

TEST(TimerTest, ADroppedOneIsSilent) {
  Loop loop;
  bool fired = false;
  auto timer = std::make_unique<Timer>(loop, [&] { fired = true; });
  timer->Start(milliseconds(0));
  timer.reset();
  EXPECT_FALSE(loop.RunUntil([&] { return fired; }, milliseconds(10)));
}

TEST(TimerTest, OneTimerMayDropAnotherThatIsDue) {
  Loop loop;
  bool fired = false;
  bool dropped = false;
  std::unique_ptr<Timer> victim;
  Timer killer(loop, [&] {
    victim.reset();
    dropped = true;
  });
  victim = std::make_unique<Timer>(loop, [&] { fired = true; });
  killer.Start(milliseconds(0));
  victim->Start(milliseconds(0));
  ASSERT_TRUE(loop.RunUntil([&] { return dropped; }, test::kLong));
  EXPECT_FALSE(loop.RunUntil([&] { return fired; }, milliseconds(10)));
}

TEST(TimerTest, TheSoonerFiresFirst) {
  Loop loop;
  std::vector<int> order;
  Timer late(loop, [&] { order.push_back(2); });
  Timer soon(loop, [&] { order.push_back(1); });
  late.Start(milliseconds(20));
  soon.Start(milliseconds(2));
  ASSERT_TRUE(loop.RunUntil([&] { return order.size() == 2; }, test::kLong));
  EXPECT_EQ(order, (std::vector{1, 2}));
}

}  // namespace
}  // namespace rankrun
