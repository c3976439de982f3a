#include "base/interruptible_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/status/death_watch.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

struct InterruptibleCallTest : testing::Test {
  void SetUp() override { SetInterruptHook(Ask, this); }
  void TearDown() override { SetInterruptHook(nullptr, nullptr); }

  static int Ask(void* test) {
    auto& self = *static_cast<InterruptibleCallTest*>(test);
    self.asked += 1;
    EXPECT_TRUE(InterruptibleCall::IsInHook());
    EXPECT_FALSE(InterruptibleCall::IsUnderWay());
    EXPECT_FALSE(InterruptibleCall::IsInterrupted()) << "it would ask itself";
    return self.answer;
  }

  std::atomic<int> asked = 0;
  int answer = 1;
};

TEST_F(InterruptibleCallTest, AsksAfterThePauseAndAfterAnAnswerNoMore) {
  const InterruptibleCall call;
  const TimePoint began = MonotonicClock().Now();
  EXPECT_TRUE(test::WaitFor([] { return InterruptibleCall::IsInterrupted(); }));
  EXPECT_GE(MonotonicClock().Now(), began + InterruptibleCall::kPause);
  EXPECT_TRUE(InterruptibleCall::IsInterrupted());
  EXPECT_TRUE(InterruptibleCall::WasInterrupted());
  EXPECT_EQ(asked, 1);
}

TEST_F(InterruptibleCallTest, ACallThatGoesOnIsAskedForAgain) {
  answer = 0;
  const InterruptibleCall call;
  EXPECT_TRUE(test::WaitFor([&] { return InterruptibleCall::IsInterrupted() || asked == 3; }));
  EXPECT_FALSE(InterruptibleCall::WasInterrupted());
}

TEST_F(InterruptibleCallTest, AnInnerCallBelongsToTheOuterOne) {
  const InterruptibleCall outer;
  {
    const InterruptibleCall inner;
    EXPECT_TRUE(test::WaitFor([] { return InterruptibleCall::IsInterrupted(); }));
  }
  EXPECT_TRUE(InterruptibleCall::IsUnderWay());
  EXPECT_TRUE(InterruptibleCall::WasInterrupted());
}

TEST_F(InterruptibleCallTest, OtherThreadsAndCallsWithoutAHookAreNotAskedFor) {
  const InterruptibleCall call;
  std::jthread([] { EXPECT_FALSE(InterruptibleCall::IsUnderWay()); }).join();
  SetInterruptHook(nullptr, nullptr);
  std::jthread([] {
    const InterruptibleCall without;
    EXPECT_FALSE(InterruptibleCall::IsUnderWay());
  }).join();
  EXPECT_TRUE(InterruptibleCall::IsUnderWay()) << "it began with the hook";
}

TEST_F(InterruptibleCallTest, AWaitAsksWithoutTheMutex) {
  Mutex mutex;
  CondVar changed;
  SetInterruptHook(
      [](void* locked) {
        const bool is_free = static_cast<Mutex*>(locked)->TryLock();
        if (is_free) static_cast<Mutex*>(locked)->Unlock();
        return is_free ? 1 : 0;
      },
      &mutex);
  const InterruptibleCall call;
  const TimePoint deadline = MonotonicClock().Now() + test::kLong;
  MutexLock lock(mutex);
  while (WaitUnlessInterrupted(changed, mutex, deadline)) {
  }
  EXPECT_TRUE(InterruptibleCall::WasInterrupted());
  EXPECT_LT(MonotonicClock().Now(), deadline);
}

TEST_F(InterruptibleCallTest, AWaitEndsAtItsDeadline) {
  answer = 0;
  Mutex mutex;
  CondVar changed;
  const InterruptibleCall call;
  const TimePoint deadline = MonotonicClock().Now() + 3 * InterruptibleCall::kPause;
  MutexLock lock(mutex);
  while (WaitUnlessInterrupted(changed, mutex, deadline)) {
  }
  EXPECT_GE(MonotonicClock().Now(), deadline);
  EXPECT_FALSE(InterruptibleCall::WasInterrupted());
  EXPECT_GE(asked, 1);
}

TEST_F(InterruptibleCallTest, AnInterruptCountsAsADeath) {
  const DeathWatch watch;
  EXPECT_FALSE(watch.looks());
  const InterruptibleCall call;
  EXPECT_TRUE(watch.looks());
  const TimePoint far = MonotonicClock().Now() + test::kLong;
  EXPECT_LT(watch.NextLook(far), far);
  watch.SleepUntil(far);
  EXPECT_LT(MonotonicClock().Now(), far);
  EXPECT_TRUE(watch.has_death());
  EXPECT_EQ(watch.Message(), "interrupted by the program");
  EXPECT_FALSE(watch.OnlyNews().has_death());
  EXPECT_EQ(watch.OnlyNews().Message(), "");
}

}  // namespace
}  // namespace rankrun
