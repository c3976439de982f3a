#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/engine/engine_fixture.h"

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using EngineBarrierTest = EngineTest;

TEST_F(EngineBarrierTest, ABarrierReleasesAllWhenTheLastArrives) {
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 3}), IsEmpty());
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 3}), IsEmpty());
  EXPECT_EQ(Value("b"), "2");
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 3}), ElementsAre(Released(1), Released(2), Released(3)));
  EXPECT_EQ(Value("b"), "3");
  EXPECT_THAT(Ask(4, BarrierRequest{"b", 3}), ElementsAre(Released(4)));
}

TEST_F(EngineBarrierTest, ABarrierOfOneOrFewerPasses) {
  EXPECT_THAT(Ask(1, BarrierRequest{"a", 1}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(1, BarrierRequest{"b", 0}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(1, BarrierRequest{"c", -5}), ElementsAre(Released(1)));
}

TEST_F(EngineBarrierTest, AClientThatLeavesABarrierStaysCounted) {
  Ask(1, BarrierRequest{"b", 3});
  EXPECT_THAT(Ask(1, CancelWaitRequest{}), ElementsAre(Canceled(1)));
  Ask(2, BarrierRequest{"b", 3});
  engine.Disconnect(2);
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 3}), ElementsAre(Released(3)));
}

TEST_F(EngineBarrierTest, AnyChangeOfABarriersKeyReleasesIt) {
  const Request changes[] = {SetRequest{"b", "1"}, AddRequest{"b", 0}, AppendRequest{"b", ""},
                             CompareSetRequest{"b", "1", "1"}, MultiSetRequest{{{"b", "1"}}}};
  for (const Request& change : changes) {
    Ask(1, SetRequest{"b", "0"});
    Ask(1, BarrierRequest{"b", 9});
    EXPECT_EQ(Ask(2, change).at(0), Released(1));
  }
}

// PyTorch's server would wake the barrier, too.
TEST_F(EngineBarrierTest, APushToABarriersNameLeavesItWaiting) {
  Ask(1, BarrierRequest{"b", 2});
  EXPECT_THAT(Ask(2, QueuePushRequest{"b", "m"}), IsEmpty());
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 2}), ElementsAre(Released(1), Released(2)));
}

TEST_F(EngineBarrierTest, ADeletedBarrierRestartsAndKeepsItsWaiters) {
  Ask(1, BarrierRequest{"b", 2});
  EXPECT_THAT(Ask(3, DeleteKeyRequest{"b"}), ElementsAre(Number(3, 1)));
  Ask(4, WaitRequest{{"b"}});
  EXPECT_THAT(Ask(2, BarrierRequest{"b", 2}), ElementsAre(Released(4)));
  EXPECT_THAT(Ask(3, BarrierRequest{"b", 2}), ElementsAre(Released(1), Released(2), Released(3)));
}

TEST_F(EngineBarrierTest, ABarrierAtANonNumberIsRefused) {
  Ask(1, SetRequest{"b", "text"});
  Error error = Refused(1, BarrierRequest{"b", 2});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("BARRIER to key b: its value is not a number"));
  EXPECT_EQ(Value("b"), "text");
}
}  // namespace
}  // namespace rankrun::store
