#include "agent/nodes/secret_refusals.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr Duration kSecond = std::chrono::seconds(1);

TEST(SecretRefusalsTest, AJobIsGivenUpSomeTimeAfterAllOthersWereRefused) {
  SecretRefusals refusals(2, 9 * kSecond);
  refusals.OnRefused(7, kStart);
  refusals.OnRefused(7, kStart + kSecond);
  EXPECT_EQ(refusals.deadline(), std::nullopt) << "one node that tries again";
  refusals.OnRefused(8, kStart + 2 * kSecond);
  EXPECT_EQ(refusals.deadline(), kStart + 11 * kSecond);
}

TEST(SecretRefusalsTest, FurtherRefusalsDoNotPostponeTheEnd) {
  SecretRefusals refusals(1, 9 * kSecond);
  refusals.OnRefused(7, kStart);
  refusals.OnRefused(8, kStart + 5 * kSecond);
  EXPECT_EQ(refusals.deadline(), kStart + 9 * kSecond);
}

TEST(SecretRefusalsTest, AJobThatNeedsNoOtherNodeIsNotGivenUp) {
  SecretRefusals refusals(0, 9 * kSecond);
  refusals.OnRefused(7, kStart);
  EXPECT_EQ(refusals.deadline(), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent
