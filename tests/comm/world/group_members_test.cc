#include "comm/world/group_members.h"

#include <gmock/gmock.h>

#include <set>

namespace rankrun::comm {
namespace {

using testing::ElementsAre;

TEST(GroupMembersTest, AreSortedUnlessTheOrderCounts) {
  EXPECT_THAT(*MembersOf({.ranks = {2, 0}}, 3), ElementsAre(0, 2));
  EXPECT_THAT(*MembersOf({.ranks = {2, 0}, .sort_ranks = false}, 3), ElementsAre(2, 0));
  EXPECT_THAT(*MembersOf({}, 3), ElementsAre(0, 1, 2));
}

TEST(GroupMembersTest, AreRanksOfTheWorldOnce) {
  EXPECT_EQ(MembersOf({.ranks = {0, 3}}, 3).error().message,
            "rank 3 is not in the world: want 0..2");
  EXPECT_EQ(MembersOf({.ranks = {-1}}, 3).error().message,
            "rank -1 is not in the world: want 0..2");
  EXPECT_EQ(MembersOf({.ranks = {1, 0, 1}}, 3).error().message, "rank 1 is given twice");
}

TEST(SubgroupsTest, ASplitHasTheListOfItsRank) {
  const std::vector<std::vector<int>> splits{{3, 1}, {0}};
  auto of_rank_1 = SplitOf(splits, 1, 4);
  EXPECT_THAT(of_rank_1->members, ElementsAre(3, 1));
  EXPECT_THAT(of_rank_1->callers, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(of_rank_1->wishes, "groups of ranks 3,1 | 0");
  EXPECT_THAT(SplitOf(splits, 0, 4)->members, ElementsAre(0));
  EXPECT_THAT(SplitOf(splits, 2, 4)->members, ElementsAre());
}

TEST(SubgroupsTest, ASplitNamesRanksOfTheParentOnce) {
  EXPECT_EQ(SplitOf({}, 0, 2).error().message, "there is no list of ranks: want one per group");
  EXPECT_EQ(SplitOf({{0}, {}}, 0, 2).error().message,
            "a list of ranks is empty: want at least one rank per group");
  EXPECT_EQ(SplitOf({{0}, {2}}, 0, 2).error().message, "rank 2 is not in the group: want 0..1");
  EXPECT_EQ(SplitOf({{0, 1}, {1}}, 0, 2).error().message, "rank 1 is given twice");
}

TEST(SubgroupsTest, TheOthersRemain) {
  auto rest = WithoutRanks({3, 0}, 2, 5);
  EXPECT_THAT(rest->members, ElementsAre(1, 2, 4));
  EXPECT_EQ(rest->callers, rest->members);
  EXPECT_EQ(rest->wishes, "to exclude ranks 0,3");
}

TEST(SubgroupsTest, ARankThatRemainsExcludesOthers) {
  EXPECT_EQ(WithoutRanks({}, 0, 2).error().message, "no rank is excluded: want at least one");
  EXPECT_EQ(WithoutRanks({-1}, 0, 2).error().message, "rank -1 is not in the group: want 0..1");
  EXPECT_EQ(WithoutRanks({1, 1}, 0, 2).error().message, "rank 1 is given twice");
  EXPECT_EQ(WithoutRanks({0}, 0, 2).error().message,
            "it excludes this rank, 0: want a call on the others");
}

TEST(GroupMembersTest, NamesDifferBySeedAndNumber) {
  std::set<std::string> names;
  for (const char* seed : {"", "0;", "0,1;", "0,1;tp", "1;tp"}) {
    for (int before : {0, 1, 2147483647}) names.insert(NameOfGroup(seed, before));
  }
  EXPECT_EQ(names.size(), 15U);
  EXPECT_EQ(NameOfGroup("0;", 1), NameOfGroup("0;", 1));
}

}  // namespace
}  // namespace rankrun::comm
