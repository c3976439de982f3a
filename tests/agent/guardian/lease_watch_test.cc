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
