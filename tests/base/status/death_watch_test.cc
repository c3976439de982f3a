#include "base/status/death_watch.h"

#include <gtest/gtest.h>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;
using test::ScopedVariable;

struct DeathWatchTest : testing::Test {
  StatusPage page = *StatusPage::Create();
  DeathWatch watch{page};
  TimePoint now = MonotonicClock().Now();
};

TEST_F(DeathWatchTest, WithoutAPageItReportsNoDeath) {
  DeathWatch nobody;
  EXPECT_FALSE(nobody.has_death());
  EXPECT_EQ(nobody.Message(), "");
  EXPECT_EQ(nobody.NextLook(now + test::kLong), now + test::kLong);
  nobody.SleepUntil(now + milliseconds(20));
  EXPECT_GE(MonotonicClock().Now(), now + milliseconds(20));
}

TEST_F(DeathWatchTest, ReadsTheDeathOnThePage) {
  EXPECT_FALSE(watch.has_death());
  page.PublishPeerDeath("rank 5 was killed by SIGKILL");
  EXPECT_TRUE(watch.has_death());
  EXPECT_EQ(watch.Message(), "rank 5 was killed by SIGKILL");
}

TEST_F(DeathWatchTest, TheErrorNamesTheDeathAndTheTimeWaited) {
  page.PublishPeerDeath("rank 5 was killed by SIGKILL");
  Error error = watch.ErrorSince(MonotonicClock().Now() - std::chrono::minutes(60));
  EXPECT_EQ(error.code, ErrorCode::kCancelled);
  EXPECT_EQ(error.message, "rank 5 was killed by SIGKILL; waited 3600.0 s");
}

TEST_F(DeathWatchTest, LooksEveryFiveMillisecondsAndNotPastTheDeadline) {
  TimePoint next = watch.NextLook(now + test::kLong);
  EXPECT_GT(next, now);
  EXPECT_LE(next, MonotonicClock().Now() + milliseconds(5));
  EXPECT_EQ(watch.NextLook(now), now);
}

TEST_F(DeathWatchTest, APublishedDeathIsNoNews) {
  EXPECT_FALSE(watch.OnlyNews().has_death());
  DeathWatch before = watch.OnlyNews();
  page.PublishPeerDeath("rank 5 was killed by SIGKILL");
  EXPECT_TRUE(before.has_death());
  EXPECT_FALSE(watch.OnlyNews().has_death());
}

TEST_F(DeathWatchTest, ADeathEndsTheSleep) {
  page.PublishPeerDeath("rank 5 was killed by SIGKILL");
  watch.SleepUntil(now + 10 * test::kLong);
  EXPECT_LT(MonotonicClock().Now(), now + 10 * test::kLong);
}

TEST_F(DeathWatchTest, OfThisProcessReadsTheEnvironment) {
  ScopedVariable fd("RANKRUN_STATUS_FD", std::to_string(page.fd()).c_str());
  ScopedVariable path("RANKRUN_STATUS_PATH", page.Path().c_str());
  // Runs in a process that has not looked up its page yet.
  pid_t child = test::Fork([&] {
    page.PublishPeerDeath("rank 5 was killed by SIGKILL");
    return DeathWatch::OfThisProcess().has_death() ? 0 : 1;
  });
  EXPECT_EQ(test::WaitForExit(child), ProcessExit{});
}

}  // namespace
}  // namespace rankrun
