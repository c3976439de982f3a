#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/engine/engine_fixture.h"

// APPEND, MULTI_GET, MULTI_SET, GETNUMKEYS and LIST_KEYS.

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using EngineMultiKeyTest = EngineTest;

Outgoing Values(ConnectionId to, std::vector<std::string> values) {
  return {to, ValuesReply{std::move(values)}};
}

TEST_F(EngineMultiKeyTest, AppendCreatesOrExtendsAValueAndHasNoReply) {
  EXPECT_THAT(Ask(1, AppendRequest{"k", "one"}), IsEmpty());
  EXPECT_THAT(Ask(1, AppendRequest{"k", std::string("\0two", 4)}), IsEmpty());
  EXPECT_EQ(Value("k"), std::string("one\0two", 7));
}

TEST_F(EngineMultiKeyTest, AppendGrowsAValueToTheLargestReplyOnly) {
  Engine small(10'000, /*largest_reply_bytes=*/100);
  std::vector<Outgoing> replies;
  ASSERT_TRUE(small.Apply(1, AppendRequest{"k", std::string(60, 'x')}, replies));
  ASSERT_TRUE(small.Apply(1, AppendRequest{"k", std::string(40, 'x')}, replies));
  auto more = small.Apply(1, AppendRequest{"k", "x"}, replies);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "a reply of 101 bytes is over the limit of 100");
}

TEST_F(EngineMultiKeyTest, AShortMultiGetYieldsNoMoreThanTheStoreHolds) {
  const std::string large(size_t{9} << 20, 'x');
  Engine roomy(size_t{1} << 30, size_t{1} << 30);
  std::vector<Outgoing> replies;
  ASSERT_TRUE(roomy.Apply(1, SetRequest{"k", large}, replies));
  EXPECT_TRUE(roomy.Apply(1, MultiGetRequest{{"k"}}, replies));
  auto refused = roomy.Apply(1, MultiGetRequest{{"k", "k"}}, replies);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("is larger than all keys and values"));
}

TEST_F(EngineMultiKeyTest, MultiGetAnswersInTheOrderOfTheKeys) {
  Ask(1, SetRequest{"a", "1"});
  Ask(1, SetRequest{"b", "22"});
  EXPECT_THAT(Ask(1, MultiGetRequest{{"b", "missing", "a", "b"}}),
              ElementsAre(Values(1, {"22", "", "1", "22"})));
  EXPECT_THAT(Ask(1, MultiGetRequest{}), ElementsAre(Values(1, {})));
}

TEST_F(EngineMultiKeyTest, ListsThatAreTooLargeAreRefused) {
  Engine small(10'000, /*largest_reply_bytes=*/100);
  std::vector<Outgoing> replies;
  ASSERT_TRUE(small.Apply(1, SetRequest{std::string(50, 'a'), std::string(50, 'x')}, replies));
  ASSERT_TRUE(small.Apply(1, SetRequest{std::string(50, 'b'), ""}, replies));
  EXPECT_FALSE(small.Apply(1, ListKeysRequest{}, replies));
  std::string key(50, 'a');
  EXPECT_TRUE(small.Apply(1, MultiGetRequest{{key}}, replies));
  EXPECT_FALSE(small.Apply(1, MultiGetRequest{{key, key}}, replies));
}

TEST_F(EngineMultiKeyTest, MultiSetSetsInOrder) {
  EXPECT_THAT(Ask(1, MultiSetRequest{{{"a", "1"}, {"b", "2"}, {"a", "3"}}}), IsEmpty());
  EXPECT_EQ(Value("a"), "3");
  EXPECT_EQ(Value("b"), "2");
  EXPECT_THAT(Ask(1, MultiSetRequest{}), IsEmpty());
}

TEST_F(EngineMultiKeyTest, MultiSetWakesWithEachKey) {
  Ask(1, WaitRequest{{"a", "b"}});
  Ask(2, WaitRequest{{"b"}});
  EXPECT_THAT(Ask(3, MultiSetRequest{{{"b", ""}, {"a", ""}}}),
              ElementsAre(Released(2), Released(1)));
}

TEST_F(EngineMultiKeyTest, KeysAreCountedAndListedAndQueuesAreNot) {
  EXPECT_THAT(Ask(1, GetNumKeysRequest{}), ElementsAre(Number(1, 0)));
  Ask(1, SetRequest{"/k", ""});
  Ask(1, AddRequest{"init/", 1});
  Ask(1, QueuePushRequest{"/q", ""});
  Ask(2, WaitRequest{{"/w"}});
  EXPECT_THAT(Ask(1, GetNumKeysRequest{}), ElementsAre(Number(1, 2)));
  EXPECT_THAT(std::get<KeysReply>(Ask(1, ListKeysRequest{}).at(0).reply).keys,
              UnorderedElementsAre("/k", "init/"));
}
}  // namespace
}  // namespace rankrun::store
