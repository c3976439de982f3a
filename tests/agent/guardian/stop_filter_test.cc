#include "agent/guardian/stop_filter.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr pid_t kGuardian = 100;
constexpr pid_t kAgent = 101;
constexpr pid_t kUser = 7;

struct StopFilterTest : testing::Test {
  bool Count(int signal_number, pid_t receiver, pid_t sender) {
    return filter.Count({signal_number, receiver, sender}, clock.Now());
  }
  FakeClock clock;
  StopFilter filter;
};

TEST_F(StopFilterTest, TheFirstSignalIsARequest) {
  EXPECT_EQ(filter.requests(), 0);
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  EXPECT_EQ(filter.requests(), 1);
}

TEST_F(StopFilterTest, TheSameSignalAtAnotherReceiverIsAnEcho) {
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  clock.Advance(milliseconds(499));
  EXPECT_FALSE(Count(SIGTERM, kAgent, kUser));
  EXPECT_EQ(filter.requests(), 1);
}

TEST_F(StopFilterTest, TheSameSignalOfAnotherSenderIsAnEcho) {
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  EXPECT_FALSE(Count(SIGTERM, kGuardian, kUser + 1));
}

TEST_F(StopFilterTest, After500MsItIsARequestOfItsOwn) {
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  clock.Advance(milliseconds(500));
  EXPECT_TRUE(Count(SIGTERM, kAgent, kUser));
  EXPECT_EQ(filter.requests(), 2);
}

TEST_F(StopFilterTest, AnEchoDoesNotProlongTheTime) {
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  clock.Advance(milliseconds(400));
  EXPECT_FALSE(Count(SIGTERM, kAgent, kUser));
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(Count(SIGTERM, kAgent, kUser));
}

TEST_F(StopFilterTest, PressingCtrlCTwiceIsTwoRequests) {
  EXPECT_TRUE(Count(SIGINT, kGuardian, 0));
  clock.Advance(milliseconds(100));
  EXPECT_TRUE(Count(SIGINT, kGuardian, 0));
  EXPECT_EQ(filter.requests(), 2);
}

TEST_F(StopFilterTest, AnotherSignalIsARequestOfItsOwn) {
  EXPECT_TRUE(Count(SIGINT, kGuardian, kUser));
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  EXPECT_EQ(filter.requests(), 2);
}

// timeout(1) signals its child, and microseconds later its process group.
TEST_F(StopFilterTest, TheSameSignalAtOnceByAProcessIsAnEcho) {
  EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
  EXPECT_FALSE(Count(SIGTERM, kGuardian, kUser));
  EXPECT_EQ(filter.requests(), 1);
}

TEST_F(StopFilterTest, SignallingAllProcessesTwiceIsTwoRequests) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Count(SIGTERM, kGuardian, kUser));
    EXPECT_FALSE(Count(SIGTERM, kAgent, kUser));
    clock.Advance(milliseconds(600));
  }
  EXPECT_EQ(filter.requests(), 2);
}

}  // namespace
}  // namespace rankrun::agent
