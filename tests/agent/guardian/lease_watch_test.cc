#include "agent/guardian/lease_watch.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

struct LeaseWatchTest : testing::Test {
  TimePoint At(int ms) const { return TimePoint{} + milliseconds(ms); }
  LeaseWatch watch;
};

TEST_F(LeaseWatchTest, WithoutALeaseNothingExpires) {
  watch.Renew(At(0));
  EXPECT_FALSE(watch.deadline());
  EXPECT_FALSE(watch.Expired(At(1'000'000)));
}

TEST_F(LeaseWatchTest, SilenceForALeaseExpiresIt) {
  watch.Grant(milliseconds(100), At(10));
  EXPECT_FALSE(watch.Expired(At(109)));
  EXPECT_TRUE(watch.Expired(At(110)));
}

TEST_F(LeaseWatchTest, EachMessageRenewsTheLease) {
  watch.Grant(milliseconds(100), At(0));
  watch.Renew(At(90));
  EXPECT_FALSE(watch.Expired(At(189)));
  EXPECT_TRUE(watch.Expired(At(190)));
  watch.Grant(milliseconds(50), At(190));
  EXPECT_TRUE(watch.Expired(At(240)));
}

TEST_F(LeaseWatchTest, AWatcherThatWakesInTimeForgivesNothing) {
  watch.Grant(milliseconds(100), At(0));
  watch.SleepUntil(At(100));
  watch.OnRunning(At(125));
  EXPECT_TRUE(watch.Expired(At(125)));
}

TEST_F(LeaseWatchTest, AWatcherThatWasStoppedGivesAnotherLease) {
  watch.Grant(milliseconds(100), At(0));
  watch.SleepUntil(At(100));
  watch.OnRunning(At(5'000));
  EXPECT_FALSE(watch.Expired(At(5'099)));
  EXPECT_TRUE(watch.Expired(At(5'100)));
}

TEST_F(LeaseWatchTest, AnEarlyWakeUpRenewsNothing) {
  watch.Grant(milliseconds(100), At(0));
  watch.SleepUntil(At(100));
  watch.OnRunning(At(75));
  watch.OnRunning(At(100));
  EXPECT_TRUE(watch.Expired(At(100)));
}

TEST_F(LeaseWatchTest, AWatcherThatWasStoppedBetweenTwoSleepsGivesAnotherLease) {
  watch.Grant(milliseconds(100), At(0));
  watch.SleepUntil(At(100));
  watch.OnRunning(At(50));
  watch.OnRunning(At(5'000));
  EXPECT_TRUE(watch.Expired(At(5'100)));
  EXPECT_FALSE(watch.Expired(At(5'099)));
}

// Freezes the watcher from `begin` to `end` ms after the grant of a lease of 100.
// Returns whether the lease has expired when it wakes.
bool ExpiresAfterFreeze(int begin, int end) {
  auto at = [](int ms) { return TimePoint{} + milliseconds(ms); };
  LeaseWatch watch;
  watch.Grant(milliseconds(100), at(0));
  int now = 0;
  while (now < begin) {
    watch.OnRunning(at(now));
    auto next = watch.NextLook(at(now));
    watch.SleepUntil(*next);
    now = static_cast<int>((*next - TimePoint{}) / milliseconds(1));
  }
  watch.OnRunning(at(std::max(now, end)));
  return watch.Expired(at(std::max(now, end)));
}

TEST_F(LeaseWatchTest, AFreezeOfHalfALeaseIsNoticedWhenItBegins) {
  for (int begin = 1; begin < 100; ++begin) {
    EXPECT_FALSE(ExpiresAfterFreeze(begin, begin + 51)) << "frozen from " << begin << " ms";
    EXPECT_FALSE(ExpiresAfterFreeze(begin, begin + 110)) << "frozen from " << begin << " ms";
  }
}

TEST_F(LeaseWatchTest, ALongSleepWithoutALeaseForgivesNothing) {
  watch.OnRunning(At(0));
  watch.SleepUntil(std::nullopt);
  watch.OnRunning(At(5'000));
  watch.Grant(milliseconds(100), At(5'000));
  watch.OnRunning(At(5'020));
  EXPECT_TRUE(watch.Expired(At(5'100)));
}

}  // namespace
}  // namespace rankrun::agent
