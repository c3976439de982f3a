#include "comm/rpc/members.h"

#include <gmock/gmock.h>

namespace rankrun::comm::rpc {
namespace {

using testing::StartsWith;

TEST(RpcMembersTest, TextKeepsAllOfThem) {
  Members members;
  members = *With(members, {-1, "a"});
  members = *With(members, {5, "b:2"});
  members = *With(members, {-1, "c"});
  EXPECT_EQ(members.version, 3);
  EXPECT_EQ(members.Find(5)->joined, 2);
  EXPECT_EQ(members.Find(1)->worker.name, "c");
  EXPECT_EQ(members.Find(2), nullptr);
  EXPECT_EQ(*MembersIn(TextOf(members)), members);
  EXPECT_EQ(*MembersIn(TextOf(Members{})), Members{});
}

TEST(RpcMembersTest, NoMemberIsLikeAnEarlierOne) {
  Members members = *With(*With(Members{}, {0, "a"}), {1, "b"});
  Member b = *members.Find(1);
  members = Without(members, b);
  EXPECT_EQ(members.version, 3);
  EXPECT_EQ(members.Find(1), nullptr);
  members = *With(members, {1, "b"});
  EXPECT_NE(*members.Find(1), b);
  EXPECT_EQ(Without(members, b).list, members.list) << "an earlier member is not there any more";
}

TEST(RpcMembersTest, AMemberThatIsTakenOffLearnsByWhom) {
  Members members = *With(*With(Members{}, {0, "a"}, {}, "127.0.0.1:1"), {1, "b"});
  Member a = *members.Find(0);
  Member b = *members.Find(1);
  members = Without(Without(members, b, "a"), a);
  EXPECT_EQ(members.RemoverOf(b), "a");
  EXPECT_EQ(members.RemoverOf(a), "") << "it has left by itself";
  EXPECT_EQ(Without(members, b, "c").RemoverOf(b), "a");
  for (int i = 0; i < 100; ++i) {
    members = *With(members, {7, "x"});
    members = Without(members, *members.Find(7), "a");
  }
  EXPECT_EQ(members.RemoverOf(b), "");
  EXPECT_LE(members.removed.size(), 32U);
  EXPECT_EQ(*MembersIn(TextOf(members)), members);
}

TEST(RpcMembersTest, NamesAndIdsAreChecked) {
  Members members = *With(Members{}, {0, "a"});
  EXPECT_THAT(With(members, {1, "a"}).error().message,
              StartsWith("workers 0 and 1 have the name a"));
  EXPECT_THAT(With(members, {0, "b"}).error().message, StartsWith("workers a and b have the id 0"));
  EXPECT_EQ(With(members, {-2, "b"}).error().message, "the rank is -2: want 0 or more");
  EXPECT_FALSE(With(members, {1, "b c"}));
}

TEST(RpcMembersTest, ANameThatIsNotUtf8IsReplaced) {
  Members members = *With(Members{}, {0, "a"});
  members = Without(members, *members.Find(0), "caf\xe9");
  EXPECT_EQ(MembersIn(TextOf(members))->removed.front().by, "caf\xef\xbf\xbd");
}

TEST(RpcMembersTest, AnotherTextIsRefused) {
  for (const char* wrong : {"", "x", "[]", "{}", R"({"version":1})", R"({"version":1,"workers":3})",
                            R"({"version":1,"workers":[{}]})"}) {
    EXPECT_EQ(MembersIn(wrong).error().code, ErrorCode::kProtocol) << wrong;
  }
}

}  // namespace
}  // namespace rankrun::comm::rpc
