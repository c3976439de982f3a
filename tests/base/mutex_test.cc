#include "base/mutex.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

namespace rankrun {
namespace {

using namespace std::chrono_literals;

TimePoint In(Duration time) { return MonotonicClock().Now() + time; }

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  int sum = 0;
  auto add = [&] {
    for (int i = 0; i < 10'000; ++i) {
      MutexLock lock(mutex);
      sum += 1;
    }
  };
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) thread = std::thread(add);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 40'000);
}

bool AnotherThreadCanLock(Mutex& mutex) {
  bool locked = false;
  std::thread other([&] {
    if (!mutex.TryLock()) return;
    MutexLock lock(mutex, std::adopt_lock);
    locked = true;
  });
  other.join();
  return locked;
}

TEST(MutexTest, ALockHoldsTheMutexUntilTheEndOfItsScope) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(AnotherThreadCanLock(mutex));
  }
  EXPECT_TRUE(AnotherThreadCanLock(mutex));
}

TEST(MutexTest, ALockReleasesTheMutexEarlyOnRequest) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.Unlock();
    EXPECT_TRUE(AnotherThreadCanLock(mutex));
    lock.Lock();
    EXPECT_FALSE(AnotherThreadCanLock(mutex));
    lock.Unlock();
  }
  EXPECT_TRUE(AnotherThreadCanLock(mutex));
}

TEST(MutexTest, AnUnlockReleasesTheMutexUntilTheEndOfItsScope) {
  Mutex mutex;
  MutexLock lock(mutex);
  {
    MutexUnlock unlock(mutex);
    EXPECT_TRUE(AnotherThreadCanLock(mutex));
  }
  EXPECT_FALSE(AnotherThreadCanLock(mutex));
}

// Threads that wait until Release.
struct Waiters {
  Mutex mutex;
  CondVar changed;
  int waiting GUARDED_BY(mutex) = 0;
  bool released GUARDED_BY(mutex) = false;

  void Wait() {
    MutexLock lock(mutex);
    waiting += 1;
    while (!released) changed.Wait(mutex);
    waiting -= 1;
  }
  // Lets them go on once `count` of them wait. The caller notifies them.
  void Release(int count) {
    for (;;) {
      MutexLock lock(mutex);
      released = waiting == count;
      if (released) return;
    }
  }
  int Count() {
    MutexLock lock(mutex);
    return waiting;
  }
};

TEST(CondVarTest, NotifyOneEndsAWaitThatHasReleasedTheMutex) {
  Waiters waiters;
  std::thread thread([&] { waiters.Wait(); });
  waiters.Release(1);
  waiters.changed.NotifyOne();
  thread.join();
  EXPECT_EQ(waiters.Count(), 0);
}

TEST(CondVarTest, NotifyAllEndsTheWaitsOfAllThreads) {
  Waiters waiters;
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) thread = std::thread([&] { waiters.Wait(); });
  waiters.Release(3);
  waiters.changed.NotifyAll();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(waiters.Count(), 0);
}

TEST(CondVarTest, AWaitTimesOutNotBeforeItsDeadlineAndHoldsTheMutexAfterwards) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(mutex);
  TimePoint deadline = In(5ms);
  while (changed.WaitUntil(mutex, deadline)) {
  }
  EXPECT_GE(MonotonicClock().Now(), deadline);
  EXPECT_FALSE(AnotherThreadCanLock(mutex));
}

TEST(CondVarTest, ANotificationEndsATimedWaitBeforeItsDeadline) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  MutexLock lock(mutex);
  std::thread notifier([&] {
    MutexLock locked(mutex);
    ready = true;
    changed.NotifyOne();
  });
  TimePoint deadline = In(60s);
  bool in_time = true;
  while (in_time && !ready) in_time = changed.WaitUntil(mutex, deadline);
  EXPECT_TRUE(in_time);
  lock.Unlock();
  notifier.join();
}

}  // namespace
}  // namespace rankrun
