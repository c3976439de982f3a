#include "comm/shm/error_line.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace rankrun::comm::shm {
namespace {

struct ErrorLineTest : testing::Test {
  std::string Conclude(uint64_t call) {
    auto ok = other.Conclude(call);
    return ok ? "result" : ok.error().message;
  }

  SegmentHeader header{};
  ErrorLine mine{header}, other{header};
  const Error error{ErrorCode::kTimeout, "rank 2 has not called"};
};

TEST_F(ErrorLineTest, ACallInWhichARankHasFailedHasNoResult) {
  EXPECT_EQ(Conclude(1), "result");
  mine.Publish(error);
  EXPECT_EQ(Conclude(1), "rank 2 has not called");
  EXPECT_EQ(Conclude(2), "rank 2 has not called");
}

TEST_F(ErrorLineTest, AFailureInALaterCallDoesNotCount) {
  ASSERT_TRUE(mine.Conclude(5));
  mine.Publish(error);
  EXPECT_EQ(Conclude(5), "result");
  EXPECT_FALSE(mine.PublishedIn(5));
  EXPECT_EQ(Conclude(6), "rank 2 has not called");
}

TEST_F(ErrorLineTest, AResultWaitsForTheDecisionOfARank) {
  ASSERT_TRUE(mine.Claim());
  EXPECT_FALSE(other.Claim());
  {
    std::jthread decides([&] { mine.DropClaim(); });
    EXPECT_EQ(Conclude(1), "result");
  }
  ASSERT_TRUE(mine.Claim());
  std::jthread decides([&] { mine.PublishClaimed(error); });
  EXPECT_EQ(Conclude(1), "rank 2 has not called");
}

TEST_F(ErrorLineTest, AnErrorIsPublishedAfterAClaimThatIsDropped) {
  ASSERT_TRUE(mine.Claim());
  std::jthread decides([&] { mine.DropClaim(); });
  other.Publish(error);
  EXPECT_EQ(Conclude(1), "rank 2 has not called");
}

}  // namespace
}  // namespace rankrun::comm::shm
