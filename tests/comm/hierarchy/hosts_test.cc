#include "comm/hierarchy/hosts.h"

#include <gmock/gmock.h>

#include "comm/core/operation.h"

namespace rankrun::comm::hierarchy {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kThreeHosts{"a", "b", "a", "c", "b"};

TEST(HostsTest, HostsAreInTheOrderOfTheirFirstRanks) {
  Hosts hosts(kThreeHosts, 4);
  EXPECT_EQ(hosts.count(), 3);
  EXPECT_THAT(hosts.ranks(0), ElementsAre(0, 2));
  EXPECT_THAT(hosts.ranks(1), ElementsAre(1, 4));
  EXPECT_THAT(hosts.ranks(2), ElementsAre(3));
  EXPECT_EQ(hosts.own(), 1);
  EXPECT_THAT(hosts.own_ranks(), ElementsAre(1, 4));
}

TEST(HostsTest, EachRankHasAPlaceInItsHost) {
  Hosts hosts(kThreeHosts, 0);
  std::vector<int> places;
  for (int rank = 0; rank < 5; ++rank) places.push_back(hosts.IndexInHost(rank));
  EXPECT_THAT(places, ElementsAre(0, 0, 1, 0, 1));
}

TEST(HostsTest, TheRootRepresentsItsHostAndFirstRanksTheOthers) {
  Hosts hosts(kThreeHosts, 0);
  EXPECT_THAT(hosts.Representatives(Operation::kNoRoot), ElementsAre(0, 1, 3));
  EXPECT_THAT(hosts.Representatives(4), ElementsAre(0, 4, 3));
  EXPECT_THAT(hosts.Representatives(2), ElementsAre(2, 1, 3));
}

TEST(HostsTest, OneHostHasOneRepresentative) {
  Hosts hosts({"a", "a"}, 1);
  EXPECT_EQ(hosts.count(), 1);
  EXPECT_THAT(hosts.Representatives(1), ElementsAre(1));
}

}  // namespace
}  // namespace rankrun::comm::hierarchy
