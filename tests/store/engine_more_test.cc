#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/engine_fixture.h"

// APPEND, MULTI_GET, MULTI_SET, GETNUMKEYS, LIST_KEYS, queues and BARRIER.

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using EngineMoreTest = EngineTest;

Outgoing Values(ConnectionId to, std::vector<std::string> values) {
  return {to, ValuesReply{std::move(values)}};
}
Outgoing Popped(ConnectionId to, int64_t length_before, std::string value) {
  return {to, PopReply{length_before, std::move(value)}};
}
Outgoing Nothing(ConnectionId to) { return {to, PopReply{0, std::nullopt}}; }
Outgoing Ready(ConnectionId to) { return {to, CheckReply::kReady}; }

TEST_F(EngineMoreTest, AppendMakesOrLengthensAValueAndHasNoReply) {
  EXPECT_THAT(Ask(1, AppendRequest{"k", "one"}), IsEmpty());
  EXPECT_THAT(Ask(1, AppendRequest{"k", std::string("\0two", 4)}), IsEmpty());
  EXPECT_EQ(Value("k"), std::string("one\0two", 7));
}

TEST_F(EngineMoreTest, AppendGrowsAValueToTheLargestReplyOnly) {
  Engine small(10'000, /*largest_reply_bytes=*/100);
  std::vector<Outgoing> replies;
  ASSERT_TRUE(small.Apply(1, AppendRequest{"k", std::string(60, 'x')}, replies));
  ASSERT_TRUE(small.Apply(1, AppendRequest{"k", std::string(40, 'x')}, replies));
  auto more = small.Apply(1, AppendRequest{"k", "x"}, replies);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "a reply of 101 bytes is over the limit of 100");
}

TEST_F(EngineMoreTest, MultiGetAnswersInTheOrderOfTheKeys) {
  Ask(1, SetRequest{"a", "1"});
  Ask(1, SetRequest{"b", "22"});
  EXPECT_THAT(Ask(1, MultiGetRequest{{"b", "missing", "a", "b"}}),
              ElementsAre(Values(1, {"22", "", "1", "22"})));
  EXPECT_THAT(Ask(1, MultiGetRequest{}), ElementsAre(Values(1, {})));
}

TEST_F(EngineMoreTest, ListsThatAreTooLargeAreRefused) {
  Engine small(10'000, /*largest_reply_bytes=*/100);
  std::vector<Outgoing> replies;
  ASSERT_TRUE(small.Apply(1, SetRequest{std::string(50, 'a'), std::string(50, 'x')}, replies));
  ASSERT_TRUE(small.Apply(1, SetRequest{std::string(50, 'b'), ""}, replies));
  EXPECT_FALSE(small.Apply(1, ListKeysRequest{}, replies));
  const std::string key(50, 'a');
  EXPECT_TRUE(small.Apply(1, MultiGetRequest{{key}}, replies));
  EXPECT_FALSE(small.Apply(1, MultiGetRequest{{key, key}}, replies));
}

TEST_F(EngineMoreTest, MultiSetSetsInOrder) {
  EXPECT_THAT(Ask(1, MultiSetRequest{{{"a", "1"}, {"b", "2"}, {"a", "3"}}}), IsEmpty());
  EXPECT_EQ(Value("a"), "3");
  EXPECT_EQ(Value("b"), "2");
  EXPECT_THAT(Ask(1, MultiSetRequest{}), IsEmpty());
}

TEST_F(EngineMoreTest, MultiSetWakesWithEachKey) {
  Ask(1, WaitRequest{{"a", "b"}});
  Ask(2, WaitRequest{{"b"}});
  EXPECT_THAT(Ask(3, MultiSetRequest{{{"b", ""}, {"a", ""}}}),
              ElementsAre(Released(2), Released(1)));
}

TEST_F(EngineMoreTest, KeysAreCountedAndListedAndQueuesAreNot) {
  EXPECT_THAT(Ask(1, GetNumKeysRequest{}), ElementsAre(Number(1, 0)));
  Ask(1, SetRequest{"/k", ""});
  Ask(1, AddRequest{"init/", 1});
  Ask(1, QueuePushRequest{"/q", ""});
  Ask(2, WaitRequest{{"/w"}});
  EXPECT_THAT(Ask(1, GetNumKeysRequest{}), ElementsAre(Number(1, 2)));
  EXPECT_THAT(std::get<KeysReply>(Ask(1, ListKeysRequest{}).at(0).reply).keys,
              UnorderedElementsAre("/k", "init/"));
}

TEST_F(EngineMoreTest, AQueueIsFirstInFirstOut) {
  EXPECT_THAT(Ask(1, QueuePushRequest{"q", "one"}), IsEmpty());
  EXPECT_THAT(Ask(2, QueuePushRequest{"q", ""}), IsEmpty());
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 2)));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Popped(1, 2, "one")));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Popped(1, 1, "")));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Nothing(1)));
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 0)));
  EXPECT_EQ(engine.bytes(), 0u);
}

TEST_F(EngineMoreTest, AQueueThatIsNotEmptyExistsForCheckAndWait) {
  Ask(1, QueuePushRequest{"q", "m"});
  EXPECT_THAT(Ask(1, CheckRequest{{"q"}}), ElementsAre(Ready(1)));
  EXPECT_THAT(Ask(1, WaitRequest{{"q"}}), ElementsAre(Released(1)));
  Ask(1, QueuePopRequest{"q"});
  EXPECT_FALSE(Exists("q"));
}

TEST_F(EngineMoreTest, AWaitForAQueueAndAKeyNeedsNoSecondPush) {
  Ask(1, QueuePushRequest{"q", "m"});
  EXPECT_THAT(Ask(2, WaitRequest{{"q", "k"}}), IsEmpty());
  EXPECT_THAT(Ask(1, SetRequest{"k", ""}), ElementsAre(Released(2)));
}

TEST_F(EngineMoreTest, KeysAndQueuesOfOneNameAreTwoThings) {
  Ask(1, QueuePushRequest{"n", "item"});
  EXPECT_EQ(Value("n"), "");
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"n"}), ElementsAre(Number(1, 0)));
  Ask(1, SetRequest{"n", "value"});
  EXPECT_EQ(Value("n"), "value");
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"n"}), ElementsAre(Number(1, 1)));
  EXPECT_THAT(Ask(1, QueuePopRequest{"n"}), ElementsAre(Popped(1, 1, "item")));
}

TEST_F(EngineMoreTest, APushWakesOneWaiterTheLongestWaiting) {
  for (ConnectionId id : {1, 2, 3}) Ask(id, WaitRequest{{"q", "q"}});
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "a"}), ElementsAre(Released(1)));
  engine.Disconnect(2);
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "b"}), ElementsAre(Released(3)));
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "c"}), IsEmpty());
  EXPECT_THAT(Ask(4, QueueLenRequest{"q"}), ElementsAre(Number(4, 3)));
}

TEST_F(EngineMoreTest, AKeyOfTheNameWakesAllWhoWaitForTheQueue) {
  for (ConnectionId id : {1, 2}) Ask(id, WaitRequest{{"q"}});
  EXPECT_THAT(Ask(4, SetRequest{"q", ""}), ElementsAre(Released(1), Released(2)));
}

TEST_F(EngineMoreTest, ABarrierReleasesAllWhenTheLastArrives) {
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 3}), IsEmpty());
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 3}), IsEmpty());
  EXPECT_EQ(Value("b"), "2");
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 3}), ElementsAre(Released(1), Released(2), Released(3)));
  EXPECT_EQ(Value("b"), "3");
  EXPECT_THAT(Ask(4, BarrierRequest{"b", 3}), ElementsAre(Released(4)));
}

TEST_F(EngineMoreTest, ABarrierOfOneOrFewerPasses) {
  EXPECT_THAT(Ask(1, BarrierRequest{"a", 1}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 0}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(1, BarrierRequest{"c", -5}), ElementsAre(Released(1)));
}

TEST_F(EngineMoreTest, WhoLeavesABarrierStaysCounted) {
  Ask(1, BarrierRequest{"b", 3});
  EXPECT_THAT(Ask(1, CancelWaitRequest{}), ElementsAre(Canceled(1)));
  Ask(2, BarrierRequest{"b", 3});
  engine.Disconnect(2);
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 3}), ElementsAre(Released(3)));
}

TEST_F(EngineMoreTest, AnyChangeOfABarriersKeyReleasesIt) {
  const Request changes[] = {SetRequest{"b", "1"}, AddRequest{"b", 0}, AppendRequest{"b", ""},
                             CompareSetRequest{"b", "1", "1"}, MultiSetRequest{{{"b", "1"}}}};
  for (const Request& change : changes) {
    Ask(1, SetRequest{"b", "0"});
    Ask(1, BarrierRequest{"b", 9});
    EXPECT_EQ(Ask(2, change).at(0), Released(1));
  }
}

// PyTorch's server would wake the barrier, too.
TEST_F(EngineMoreTest, APushToABarriersNameLeavesItWaiting) {
  Ask(1, BarrierRequest{"b", 2});
  EXPECT_THAT(Ask(2, QueuePushRequest{"b", "m"}), IsEmpty());
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 2}), ElementsAre(Released(1), Released(2)));
}

TEST_F(EngineMoreTest, ADeletedBarrierStartsAnewAndKeepsItsWaiters) {
  Ask(1, BarrierRequest{"b", 2});
  EXPECT_THAT(Ask(3, DeleteKeyRequest{"b"}), ElementsAre(Number(3, 1)));
  Ask(4, WaitRequest{{"b"}});
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 2}), ElementsAre(Released(4)));
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 2}), ElementsAre(Released(1), Released(2), Released(3)));
}

TEST_F(EngineMoreTest, ABarrierAtWhatIsNoNumberIsRefused) {
  Ask(1, SetRequest{"b", "text"});
  Error error = Refused(1, BarrierRequest{"b", 2});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("BARRIER to key b: its value is no number"));
  EXPECT_EQ(Value("b"), "text");
}

TEST_F(EngineMoreTest, ClearForgetsQueuesAndBarriers) {
  Ask(1, QueuePushRequest{"q", "m"});
  Ask(1, BarrierRequest{"b", 2});
  engine.Clear();
  EXPECT_EQ(engine.bytes(), 0u);
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 0)));
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 2}), IsEmpty());
}

}  // namespace
}  // namespace rankrun::store
