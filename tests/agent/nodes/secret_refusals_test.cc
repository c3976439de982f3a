#include "agent/nodes/secret_refusals.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr Duration kSecond = std::chrono::seconds(1);

TEST(SecretRefusalsTest, AJobIsGivenUpSomeTimeAfterAllOthersWereRefused) {
  SecretRefusals refusals(2, 9 * kSecond);
  refusals.OnRefused("a", kStart);
  refusals.OnRefused("a", kStart + kSecond);
  EXPECT_EQ(refusals.deadline(), std::nullopt) << "one node that tries again";
  refusals.OnRefused("b", kStart + 2 * kSecond);
  EXPECT_EQ(refusals.deadline(), kStart + 11 * kSecond);
}

TEST(SecretRefusalsTest, FurtherRefusalsDoNotPostponeTheEnd) {
  SecretRefusals refusals(1, 9 * kSecond);
  refusals.OnRefused("a", kStart);
  refusals.OnRefused("b", kStart + 5 * kSecond);
  EXPECT_EQ(refusals.deadline(), kStart + 9 * kSecond);
}

TEST(SecretRefusalsTest, ANodeWithTheRightSecretWithdrawsTheEnd) {
  SecretRefusals refusals(1, 9 * kSecond);
  refusals.OnRefused("a", kStart);
  refusals.OnJoined();
  EXPECT_EQ(refusals.deadline(), std::nullopt);
  refusals.OnRefused("a", kStart + 60 * kSecond);
  EXPECT_EQ(refusals.deadline(), kStart + 69 * kSecond) << "once it has left";
}

TEST(SecretRefusalsTest, AJobThatNeedsNoOtherNodeIsNotGivenUp) {
  SecretRefusals refusals(0, 9 * kSecond);
  refusals.OnRefused("a", kStart);
  EXPECT_EQ(refusals.deadline(), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
