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
