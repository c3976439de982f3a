#include "store/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/store/engine/engine_fixture.h"

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST_F(EngineTest, SetOverwritesAndHasNoReply) {
  EXPECT_THAT(Ask(1, SetRequest{"k", "one"}), IsEmpty());
  EXPECT_THAT(Ask(1, SetRequest{"k", "two"}), IsEmpty());
  EXPECT_THAT(Ask(2, GetRequest{"k"}), ElementsAre(Text(2, "two")));
  EXPECT_EQ(engine.key_count(), 1u);
}

TEST_F(EngineTest, GetOfAMissingKeyIsEmptyAndCreatesNothing) {
  EXPECT_THAT(Ask(1, GetRequest{"k"}), ElementsAre(Text(1, "")));
  EXPECT_FALSE(Exists("k"));
}

TEST_F(EngineTest, KeysAndValuesMayBeEmptyOrBinary) {
  std::string binary("a\0b\xff", 4);
  Ask(1, SetRequest{"", binary});
  Ask(1, SetRequest{binary, ""});
  EXPECT_EQ(Value(""), binary);
  EXPECT_TRUE(Exists(binary));
}

TEST_F(EngineTest, AddCountsFromZeroInDecimalText) {
  EXPECT_THAT(Ask(1, AddRequest{"n", 5}), ElementsAre(Number(1, 5)));
  EXPECT_THAT(Ask(1, AddRequest{"n", -7}), ElementsAre(Number(1, -2)));
  EXPECT_EQ(Value("n"), "-2");
}

TEST_F(EngineTest, AddOfZeroCreatesTheKey) {
  EXPECT_THAT(Ask(1, AddRequest{"n", 0}), ElementsAre(Number(1, 0)));
  EXPECT_EQ(Value("n"), "0");
}

TEST_F(EngineTest, AddWrapsAround) {
  Ask(1, AddRequest{"n", kMax});
  EXPECT_THAT(Ask(1, AddRequest{"n", 1}), ElementsAre(Number(1, kMin)));
  EXPECT_THAT(Ask(1, AddRequest{"n", -1}), ElementsAre(Number(1, kMax)));
}

TEST_F(EngineTest, AddReadsNumbersAsStollDoes) {
  const std::pair<std::string, int64_t> cases[] = {
      {"12abc", 12},    {" \t\n\v\f\r7", 7},
      {"+3", 3},        {"-3", -3},
      {"0x10", 0},      {"1.5", 1},
      {"007", 7},       {std::string("4\0005", 3), 4},
      {"-0", 0},        {"9223372036854775807", kMax},
      {"  +12 34", 12}, {"-9223372036854775808", kMin},
  };
  for (const auto& [text, number] : cases) {
    Ask(1, SetRequest{"n", text});
    EXPECT_THAT(Ask(1, AddRequest{"n", 0}), ElementsAre(Number(1, number))) << text;
  }
}

TEST_F(EngineTest, AddToANonNumberIsRefusedAndChangesNothing) {
  for (std::string text : {"", " ", "abc", "+", "-", "+-5", "-+5", "--5", "- 5", "+ 5",
                           "9223372036854775808", "-9223372036854775809", "99999999999999999999"}) {
    Ask(1, SetRequest{"n", text});
    Error error = Refused(1, AddRequest{"n", 1});
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_THAT(error.message, HasSubstr("ADD to key n"));
    EXPECT_EQ(Value("n"), text);
  }
}

TEST_F(EngineTest, AKeyInAnErrorControlsNoTerminal) {
  auto message_for = [this](const std::string& key) {
    Ask(1, SetRequest{key, "abc"});
    return Refused(1, AddRequest{key, 1}).message;
  };
  EXPECT_THAT(message_for("k\nrankrun: \x1b[2J"), HasSubstr(R"(ADD to key k\nrankrun: \x1b[2J:)"));
  EXPECT_LT(message_for(std::string(1'000'000, 'k')).size(), 200u);
}

TEST_F(EngineTest, CheckIsReadyWhenAllKeysExist) {
  Ask(1, SetRequest{"a", ""});
  Ask(1, SetRequest{"b", ""});
  EXPECT_THAT(Ask(1, CheckRequest{{"a", "b", "a"}}), ElementsAre(Outgoing{1, CheckReply::kReady}));
  EXPECT_THAT(Ask(1, CheckRequest{{"a", "c"}}), ElementsAre(Outgoing{1, CheckReply::kNotReady}));
  EXPECT_THAT(Ask(1, CheckRequest{}), ElementsAre(Outgoing{1, CheckReply::kReady}));
}

TEST_F(EngineTest, ACheckedKeyThatIsWaitedForDoesNotExist) {
  Ask(1, WaitRequest{{"a"}});
  EXPECT_FALSE(Exists("a"));
  EXPECT_EQ(Value("a"), "");
  EXPECT_EQ(engine.key_count(), 0u);
}

TEST_F(EngineTest, CompareSetCreatesAMissingKeyWhenNothingIsExpected) {
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "", "x"}), ElementsAre(Text(1, "x")));
  EXPECT_EQ(Value("c"), "x");
}

TEST_F(EngineTest, CompareSetOfAMissingKeyEchoesTheExpectedValue) {
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "exp", "x"}), ElementsAre(Text(1, "exp")));
  EXPECT_FALSE(Exists("c"));
}

TEST_F(EngineTest, CompareSetStoresOnAMatchOnly) {
  Ask(1, SetRequest{"c", "a"});
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "b", "x"}), ElementsAre(Text(1, "a")));
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "", "x"}), ElementsAre(Text(1, "a")));
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "a", "x"}), ElementsAre(Text(1, "x")));
  EXPECT_EQ(Value("c"), "x");
}

TEST_F(EngineTest, CompareSetMatchesAnEmptyValueWithAnEmptyExpectation) {
  Ask(1, SetRequest{"c", ""});
  EXPECT_THAT(Ask(1, CompareSetRequest{"c", "", "x"}), ElementsAre(Text(1, "x")));
}

TEST_F(EngineTest, DeleteReturnsTheNumberOfDeletedKeys) {
  Ask(1, SetRequest{"k", "v"});
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"k"}), ElementsAre(Number(1, 1)));
  EXPECT_THAT(Ask(1, DeleteKeyRequest{"k"}), ElementsAre(Number(1, 0)));
  EXPECT_FALSE(Exists("k"));
}

TEST_F(EngineTest, DeleteOfAKeyThatIsWaitedForLeavesTheWait) {
  Ask(1, WaitRequest{{"k"}});
  EXPECT_THAT(Ask(2, DeleteKeyRequest{"k"}), ElementsAre(Number(2, 0)));
  EXPECT_THAT(Ask(2, SetRequest{"k", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, PingIsEchoed) {
  EXPECT_THAT(Ask(7, PingRequest{12345}), ElementsAre(Outgoing{7, PingReply{12345}}));
}

TEST_F(EngineTest, WaitForKeysThatExistIsAnsweredAtOnce) {
  Ask(1, SetRequest{"a", ""});
  EXPECT_THAT(Ask(2, WaitRequest{{"a", "a"}}), ElementsAre(Released(2)));
  EXPECT_THAT(Ask(2, WaitRequest{}), ElementsAre(Released(2)));
}

TEST_F(EngineTest, WaitEndsWithTheLastMissingKey) {
  Ask(1, SetRequest{"a", ""});
  EXPECT_THAT(Ask(2, WaitRequest{{"a", "b", "c"}}), IsEmpty());
  EXPECT_THAT(Ask(1, SetRequest{"c", ""}), IsEmpty());
  EXPECT_THAT(Ask(1, SetRequest{"b", ""}), ElementsAre(Released(2)));
  EXPECT_THAT(Ask(1, SetRequest{"b", ""}), IsEmpty());
}

TEST_F(EngineTest, EveryWayToCreateAKeyWakes) {
  const Request creators[] = {SetRequest{"k", ""},          AddRequest{"k", 0},
                              AppendRequest{"k", ""},       CompareSetRequest{"k", "", "x"},
                              MultiSetRequest{{{"k", ""}}}, BarrierRequest{"k", 2},
                              BarrierRequest{"k", 1}};
  for (const Request& creator : creators) {
    Ask(1, WaitRequest{{"k"}});
    EXPECT_EQ(Ask(2, creator).front(), Released(1));
    Ask(2, CancelWaitRequest{});
    Ask(2, DeleteKeyRequest{"k"});
  }
}

TEST_F(EngineTest, CompareSetThatStoresNothingWakesNoWaiter) {
  Ask(1, WaitRequest{{"k"}});
  EXPECT_THAT(Ask(2, CompareSetRequest{"k", "exp", "x"}), ElementsAre(Text(2, "exp")));
  EXPECT_THAT(Ask(2, SetRequest{"k", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, OneKeyWakesAllItsWaiters) {
  for (ConnectionId id : {1u, 2u, 3u}) Ask(id, WaitRequest{{"k"}});
  EXPECT_THAT(Ask(4, AddRequest{"k", 1}),
              ElementsAre(Released(1), Released(2), Released(3), Number(4, 1)));
}

TEST_F(EngineTest, AKeyNamedTwiceInAWaitIsOneKey) {
  Ask(1, WaitRequest{{"k", "k", "other"}});
  EXPECT_THAT(Ask(2, SetRequest{"k", ""}), IsEmpty());
  EXPECT_THAT(Ask(2, SetRequest{"other", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, ADeletedKeyStillCountsForAWait) {
  Ask(1, WaitRequest{{"a", "b"}});
  Ask(2, SetRequest{"a", ""});
  Ask(2, DeleteKeyRequest{"a"});
  EXPECT_THAT(Ask(2, SetRequest{"b", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, AWaitingConnectionMaySendOtherRequests) {
  Ask(1, WaitRequest{{"k"}});
  EXPECT_THAT(Ask(1, AddRequest{"n", 3}), ElementsAre(Number(1, 3)));
  EXPECT_THAT(Ask(1, GetRequest{"n"}), ElementsAre(Text(1, "3")));
}

TEST_F(EngineTest, AConnectionMayReleaseItself) {
  Ask(1, WaitRequest{{"k"}});
  EXPECT_THAT(Ask(1, SetRequest{"k", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, SeveralWaitsOfOneConnectionEachGetTheirReply) {
  Ask(1, WaitRequest{{"a"}});
  Ask(1, WaitRequest{{"a", "b"}});
  EXPECT_THAT(Ask(2, SetRequest{"a", ""}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(2, SetRequest{"b", ""}), ElementsAre(Released(1)));
}

TEST_F(EngineTest, CancelWaitHasExactlyOneReplyAlways) {
  EXPECT_THAT(Ask(1, CancelWaitRequest{}), ElementsAre(Canceled(1)));
  Ask(1, WaitRequest{{"a"}});
  Ask(1, WaitRequest{{"a", "b"}});
  Ask(2, WaitRequest{{"a"}});
  EXPECT_THAT(Ask(1, CancelWaitRequest{}), ElementsAre(Canceled(1)));
  EXPECT_THAT(Ask(3, SetRequest{"a", ""}), ElementsAre(Released(2)));
}

TEST_F(EngineTest, CancelAfterTheReleaseComesAfterIt) {
  Ask(1, WaitRequest{{"a"}});
  EXPECT_THAT(Ask(2, SetRequest{"a", ""}), ElementsAre(Released(1)));
  EXPECT_THAT(Ask(1, CancelWaitRequest{}), ElementsAre(Canceled(1)));
}

TEST_F(EngineTest, ADisconnectedWaiterIsForgotten) {
  Ask(1, WaitRequest{{"a", "b", "a"}});
  Ask(2, WaitRequest{{"b"}});
  engine.Disconnect(1);
  engine.Disconnect(1);
  engine.Disconnect(77);
  EXPECT_THAT(Ask(3, SetRequest{"a", ""}), IsEmpty());
  EXPECT_THAT(Ask(3, SetRequest{"b", ""}), ElementsAre(Released(2)));
}

TEST_F(EngineTest, ClearForgetsKeysAndWaits) {
  Ask(1, SetRequest{"k", "v"});
  Ask(1, WaitRequest{{"a", "b"}});
  engine.Clear();
  EXPECT_EQ(engine.key_count(), 0u);
  EXPECT_EQ(engine.bytes(), 0u);
  EXPECT_FALSE(Exists("k"));
  EXPECT_THAT(Ask(2, SetRequest{"a", ""}), IsEmpty());
  engine.Disconnect(1);
}

TEST_F(EngineTest, RemovedEntriesTakeNoBytes) {
  Ask(1, SetRequest{"k", std::string(1000, 'x')});
  size_t with_value = engine.bytes();
  EXPECT_GE(with_value, 1000u);
  Ask(1, SetRequest{"k", "x"});
  EXPECT_EQ(engine.bytes(), with_value - 999);
  Ask(1, WaitRequest{{"a", "a", "b"}});
  Ask(1, SetRequest{"a", "1"});
  Ask(1, CancelWaitRequest{});
  Ask(1, DeleteKeyRequest{"a"});
  Ask(1, DeleteKeyRequest{"k"});
  EXPECT_EQ(engine.bytes(), 0u);
}

struct FullEngineTest : EngineTest {
  FullEngineTest() {
    EXPECT_TRUE(small.Apply(1, SetRequest{"k", std::string(5000, 'x')}, replies));
  }
  bool Accepts(Request request) {
    replies.clear();
    auto applied = small.Apply(1, std::move(request), replies);
    if (!applied) {
      EXPECT_EQ(applied.error().code, ErrorCode::kSystem);
      EXPECT_THAT(applied.error().message, HasSubstr("the store is full"));
      EXPECT_THAT(replies, IsEmpty());
    }
    return bool(applied);
  }
  std::vector<Outgoing> replies;
  Engine small{5200};
};

TEST_F(FullEngineTest, AFullStoreRefusesRequestsThatNeedRoom) {
  EXPECT_FALSE(Accepts(SetRequest{"another", "v"}));
  EXPECT_FALSE(Accepts(SetRequest{"k", std::string(6000, 'x')}));
  EXPECT_FALSE(Accepts(AddRequest{"n", 1}));
  EXPECT_FALSE(Accepts(CompareSetRequest{"c", "", "x"}));
  EXPECT_FALSE(Accepts(WaitRequest{{"w"}}));
  EXPECT_FALSE(Accepts(AppendRequest{"k", std::string(200, 'x')}));
  EXPECT_FALSE(Accepts(MultiSetRequest{{{"k", ""}, {"b", std::string(200, 'x')}}}));
  EXPECT_FALSE(Accepts(QueuePushRequest{"q", ""}));
  EXPECT_FALSE(Accepts(BarrierRequest{"b", 2}));
  EXPECT_EQ(small.key_count(), 1u);
}

TEST_F(FullEngineTest, AFullStoreServesOtherRequests) {
  EXPECT_TRUE(Accepts(GetRequest{"k"}));
  EXPECT_TRUE(Accepts(CheckRequest{{"k", "z"}}));
  EXPECT_TRUE(Accepts(WaitRequest{{"k"}}));
  EXPECT_TRUE(Accepts(SetRequest{"k", std::string(5000, 'y')}));
  EXPECT_TRUE(Accepts(DeleteKeyRequest{"k"}));
  EXPECT_TRUE(Accepts(SetRequest{"another", "v"}));
}

// Would take minutes if a leaving waiter were searched among the others.
TEST_F(EngineTest, AHundredThousandWaitersOfOneKeyLeaveOneByOne) {
  constexpr ConnectionId kWaiters = 100'000;
  for (ConnectionId id = 1; id <= kWaiters; ++id) Ask(id, WaitRequest{{"k"}});
  for (ConnectionId id = 2; id <= kWaiters; ++id) engine.Disconnect(id);
  EXPECT_THAT(Ask(0, SetRequest{"k", ""}), ElementsAre(Released(1)));
}

}  // namespace
}  // namespace rankrun::store
