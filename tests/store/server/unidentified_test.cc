#include "store/server/unidentified.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;

SocketAddress At(const std::string& host) { return *SocketAddress::FromNumeric(host, 1); }

struct UnidentifiedTest : testing::Test {
  // Returns the connection that is closed: 0 if there is room.
  uint64_t Enter(uint64_t id, const std::string& host) {
    auto closed = strangers.Enter(id, At(host), now);
    EXPECT_NE(closed, std::optional<uint64_t>(0));
    return closed.value_or(0);
  }

  TimePoint now{};
  Unidentified strangers{{.in_all = 4, .per_network = 2, .chance = milliseconds(100)}};
};

TEST_F(UnidentifiedTest, ThereIsRoomUpToTheLimits) {
  EXPECT_EQ(Enter(1, "10.0.0.1"), 0u);
  EXPECT_EQ(Enter(2, "10.0.0.1"), 0u);
  EXPECT_EQ(Enter(3, "10.0.0.2"), 0u);
  EXPECT_EQ(Enter(4, "10.0.0.3"), 0u);
  EXPECT_EQ(strangers.size(), 4u);
}

TEST_F(UnidentifiedTest, ANewConnectionIsRefusedWhileTheOldestHasItsChance) {
  Enter(1, "10.0.0.1");
  Enter(2, "10.0.0.1");
  EXPECT_EQ(Enter(3, "10.0.0.1"), 3u);
  now += milliseconds(99);
  EXPECT_EQ(Enter(4, "10.0.0.1"), 4u);
  EXPECT_EQ(strangers.size(), 2u);
}

TEST_F(UnidentifiedTest, TheOldestOfTheNetworkMakesRoomAfterItsChance) {
  Enter(1, "10.0.0.1");
  Enter(2, "10.0.0.1");
  now += milliseconds(100);
  EXPECT_EQ(Enter(3, "10.0.0.1"), 1u);
  EXPECT_EQ(Enter(4, "10.0.0.1"), 2u);
  EXPECT_EQ(Enter(5, "10.0.0.1"), 5u);
  EXPECT_EQ(Enter(6, "10.0.0.2"), 0u);
  EXPECT_EQ(strangers.size(), 3u);
}

TEST_F(UnidentifiedTest, TheNetworkWithTheMostMakesRoomForOthers) {
  Enter(1, "10.0.0.9");
  Enter(2, "10.0.0.1");
  Enter(3, "10.0.0.1");
  Enter(4, "10.0.0.2");
  now += milliseconds(100);
  EXPECT_EQ(Enter(5, "10.0.0.3"), 2u);
  EXPECT_EQ(strangers.size(), 4u);
}

TEST_F(UnidentifiedTest, IdentifiedConnectionsTakeNoRoom) {
  for (uint64_t id = 1; id < 100; ++id) {
    EXPECT_EQ(Enter(id, "10.0.0.1"), 0u);
    strangers.Leave(id);
    strangers.Leave(id);
  }
  EXPECT_EQ(strangers.size(), 0u);
}

TEST_F(UnidentifiedTest, TheOldestIsTheFirstThatIsLeft) {
  EXPECT_FALSE(strangers.oldest());
  Enter(1, "10.0.0.1");
  now += milliseconds(5);
  Enter(2, "10.0.0.2");
  EXPECT_EQ(strangers.oldest()->id, 1u);
  strangers.Leave(1);
  EXPECT_EQ(strangers.oldest()->id, 2u);
  EXPECT_EQ(strangers.oldest()->since, now);
}

TEST_F(UnidentifiedTest, ANetworkIsAnIpv4AddressOrTheHalfOfAnIpv6Address) {
  Enter(1, "fd00::1");
  Enter(2, "fd00::2:0:0:1");
  EXPECT_EQ(Enter(3, "fd00::ffff:ffff:ffff:ffff"), 3u);
  EXPECT_EQ(Enter(4, "fd00:0:0:1::1"), 0u);
  EXPECT_EQ(At("::ffff:10.0.0.1").Network(), At("10.0.0.1").Network());
  EXPECT_NE(At("10.0.0.1").Network(), At("10.0.0.2").Network());
}

TEST(UnidentifiedLimitsTest, StrangersGetAnEighthOfTheOpenFiles) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  auto limits_with = [&](rlim_t files, UnidentifiedLimits limits) {
    rlimit few{.rlim_cur = files, .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    return WithinOpenFiles(limits);
  };
  UnidentifiedLimits eighth = limits_with(200, {.in_all = SIZE_MAX, .per_network = SIZE_MAX});
  EXPECT_EQ(eighth.in_all, 25u);
  EXPECT_EQ(eighth.per_network, 25u);
  EXPECT_EQ(limits_with(16, {.in_all = 100, .per_network = 100}).in_all, 8u);
  EXPECT_EQ(limits_with(200, {.in_all = 5, .per_network = 3}).in_all, 5u);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace rankrun::store
