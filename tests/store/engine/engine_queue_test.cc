#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/engine/engine_fixture.h"

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using EngineQueueTest = EngineTest;

Outgoing Popped(ConnectionId to, int64_t length_before, std::string value) {
  return {to, PopReply{length_before, std::move(value)}};
}
Outgoing Nothing(ConnectionId to) { return {to, PopReply{0, std::nullopt}}; }
Outgoing Ready(ConnectionId to) { return {to, CheckReply::kReady}; }

TEST_F(EngineQueueTest, AQueueIsFirstInFirstOut) {
  EXPECT_THAT(Ask(1, QueuePushRequest{"q", "one"}), IsEmpty());
  EXPECT_THAT(Ask(2, QueuePushRequest{"q", ""}), IsEmpty());
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 2)));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Popped(1, 2, "one")));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Popped(1, 1, "")));
  EXPECT_THAT(Ask(1, QueuePopRequest{"q"}), ElementsAre(Nothing(1)));
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 0)));
  EXPECT_EQ(engine.bytes(), 0u);
}

TEST_F(EngineQueueTest, AQueueThatIsNotEmptyExistsForCheckAndWait) {
  Ask(1, QueuePushRequest{"q", "m"});
  EXPECT_THAT(Ask(1, CheckRequest{{"q"}}), ElementsAre(Ready(1)));
  EXPECT_THAT(Ask(1, WaitRequest{{"q"}}), ElementsAre(Released(1)));
  Ask(1, QueuePopRequest{"q"});
  EXPECT_FALSE(Exists("q"));
}

TEST_F(EngineQueueTest, AWaitForAQueueAndAKeyNeedsNoSecondPush) {
  Ask(1, QueuePushRequest{"q", "m"});
  EXPECT_THAT(Ask(2, WaitRequest{{"q", "k"}}), IsEmpty());
  EXPECT_THAT(Ask(1, SetRequest{"k", ""}), ElementsAre(Released(2)));
}

TEST_F(EngineQueueTest, AKeyAndAQueueOfOneNameAreIndependent) {
  Ask(1, QueuePushRequest{"n", "item"});
  EXPECT_EQ(Value("n"), "");
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"n"}), ElementsAre(Number(1, 0)));
  Ask(1, SetRequest{"n", "value"});
  EXPECT_EQ(Value("n"), "value");
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"n"}), ElementsAre(Number(1, 1)));
  EXPECT_THAT(Ask(1, QueuePopRequest{"n"}), ElementsAre(Popped(1, 1, "item")));
}

TEST_F(EngineQueueTest, APushWakesTheLongestWaiter) {
  for (ConnectionId id : {1u, 2u, 3u}) Ask(id, WaitRequest{{"q", "q"}});
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "a"}), ElementsAre(Released(1)));
  engine.Disconnect(2);
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "b"}), ElementsAre(Released(3)));
  EXPECT_THAT(Ask(4, QueuePushRequest{"q", "c"}), IsEmpty());
  EXPECT_THAT(Ask(4, QueueLenRequest{"q"}), ElementsAre(Number(4, 3)));
}

TEST_F(EngineQueueTest, AKeyOfTheSameNameWakesAllWaitersOfTheQueue) {
  for (ConnectionId id : {1u, 2u}) Ask(id, WaitRequest{{"q"}});
  EXPECT_THAT(Ask(4, SetRequest{"q", ""}), ElementsAre(Released(1), Released(2)));
}

TEST_F(EngineQueueTest, ClearForgetsQueuesAndBarriers) {
  Ask(1, QueuePushRequest{"q", "m"});
  Ask(1, BarrierRequest{"b", 2});
  engine.Clear();
  EXPECT_EQ(engine.bytes(), 0u);
  EXPECT_THAT(Ask(1, QueueLenRequest{"q"}), ElementsAre(Number(1, 0)));
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 2}), IsEmpty());
}

}  // namespace
}  // namespace rankrun::store
