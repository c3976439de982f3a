#include "agent/coordination/query_relay.h"

#include <gmock/gmock.h>

namespace rankrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct QueryRelayTest : testing::Test {
  QueryRelayTest() {
    relay.Add(1, "a");
    relay.Add(2, "b");
    relay.Add(3, "c");
  }
  QueryRelay::Messages Ask(PeerId from, uint64_t number) {
    return relay.OnRelay(
        from, {.kind = RelayKind::kRequest, .number = number, .content = "question"}, clock.Now());
  }
  QueryRelay::Messages AskSlowly(PeerId from, uint64_t number,
                                 std::optional<uint32_t> long_answers = {}) {
    return relay.OnRelay(from,
                         {.kind = RelayKind::kRequest,
                          .number = number,
                          .limit_ms = 5'000,
                          .long_answers = long_answers},
                         clock.Now());
  }
  QueryRelay::Messages Reply(PeerId from, uint64_t number, const std::string& content) {
    return relay.OnRelay(from, {.kind = RelayKind::kAnswer, .number = number, .content = content},
                         clock.Now());
  }

  FakeClock clock;
  QueryRelay relay;
};

TEST_F(QueryRelayTest, ARequestGoesToAllOtherNodes) {
  auto out = Ask(2, 7);
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(out[0].to, 1u);
  EXPECT_EQ(out[1].to, 3u);
  EXPECT_EQ(out[0].relay.kind, RelayKind::kRequest);
  EXPECT_EQ(out[0].relay.content, "question");
  EXPECT_EQ(out[0].relay.room, Relay::kMaxBytes);
}

TEST_F(QueryRelayTest, AnswersComeBackWithTheNodeAndTheAskersNumberUntilAllAreThere) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  auto first = Reply(3, number, "from c");
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].to, 2u);
  EXPECT_EQ(first[0].relay,
            (Relay{.kind = RelayKind::kAnswer, .number = 7, .content = "from c", .node = "c"}));
  auto last = Reply(1, number, "from a");
  ASSERT_THAT(last, SizeIs(2));
  EXPECT_EQ(last[1].relay, (Relay{.kind = RelayKind::kOver, .number = 7}));
  EXPECT_EQ(relay.deadline(), std::nullopt);
}

TEST_F(QueryRelayTest, NodesThatDoNotAnswerInTimeAreNamed) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  Reply(3, number, "from c");
  clock.Advance(QueryRelay::kTimeout - std::chrono::milliseconds(1));
  EXPECT_THAT(relay.OnTick(clock.Now()), IsEmpty());
  clock.Advance(std::chrono::milliseconds(1));
  auto out = relay.OnTick(clock.Now());
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].relay.kind, RelayKind::kOver);
  EXPECT_THAT(out[0].relay.missing, ElementsAre("a"));
  EXPECT_THAT(Reply(1, number, "late"), IsEmpty());
}

TEST_F(QueryRelayTest, ARequestMayAllowMoreTimeWithinALimit) {
  auto ask = [&](uint64_t number, uint32_t limit_ms) {
    relay.OnRelay(2, {.kind = RelayKind::kRequest, .number = number, .limit_ms = limit_ms},
                  clock.Now());
  };
  ask(7, 5'000);
  ask(8, 4'000'000'000);
  Ask(2, 9);
  EXPECT_EQ(relay.deadline(), clock.Now() + QueryRelay::kTimeout);
  clock.Advance(QueryRelay::kTimeout);
  auto out = relay.OnTick(clock.Now());
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].relay.number, 9u);
  clock.Advance(std::chrono::seconds(4));
  out = relay.OnTick(clock.Now());
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].relay.number, 7u);
  clock.Advance(std::chrono::seconds(5));
  out = relay.OnTick(clock.Now());
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].relay.number, 8u);
  EXPECT_EQ(relay.deadline(), std::nullopt);
}

TEST_F(QueryRelayTest, ALostNodeIsNamedAtOnce) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  Reply(3, number, "from c");
  auto out = relay.Remove(1);
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_THAT(out[0].relay.missing, ElementsAre("a"));
}

TEST_F(QueryRelayTest, NothingIsSentToAnAskerThatIsGone) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  EXPECT_THAT(relay.Remove(2), IsEmpty());
  EXPECT_THAT(Reply(1, number, "from a"), IsEmpty());
  EXPECT_EQ(relay.deadline(), std::nullopt);
}

TEST_F(QueryRelayTest, ANodeThatAnswersTwiceOrWasNotAskedIsIgnored) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  EXPECT_THAT(Reply(2, number, "own"), IsEmpty());
  EXPECT_THAT(Reply(9, number, "stranger"), IsEmpty());
  EXPECT_THAT(Reply(1, number + 1, "other"), IsEmpty());
  EXPECT_THAT(Reply(1, number, "once"), SizeIs(1));
  EXPECT_THAT(Reply(1, number, "twice"), IsEmpty());
}

TEST_F(QueryRelayTest, AnAloneNodeGetsTheEndAtOnce) {
  QueryRelay alone;
  alone.Add(1, "a");
  auto out = alone.OnRelay(1, {.kind = RelayKind::kRequest, .number = 5}, clock.Now());
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].relay, (Relay{.kind = RelayKind::kOver, .number = 5}));
}

TEST_F(QueryRelayTest, AllAnswersTogetherFitTheLimit) {
  for (PeerId peer = 4; peer <= 1000; ++peer) relay.Add(peer, "node");
  size_t most = 0;  // bytes on their way to one asker
  const auto add = [&](const QueryRelay::Messages& out) {
    ASSERT_THAT(out, SizeIs(999));
    most += 999 * out[0].relay.room;
  };
  for (uint64_t i = 0; i < QueryRelay::kMaxSlowQueriesOfNode; ++i) add(AskSlowly(2, i));
  for (uint64_t i = 0; i < QueryRelay::kMaxQueriesOfNode; ++i) add(Ask(2, 10 + i));
  EXPECT_LT(most, size_t{8} << 20);
}

TEST_F(QueryRelayTest, SlowRequestsKeepNoOtherOut) {
  const auto refusal = [](uint64_t number) {
    return Relay{.kind = RelayKind::kOver, .number = number, .is_refused = true};
  };
  for (uint64_t i = 0; i < QueryRelay::kMaxSlowQueriesOfNode; ++i) {
    EXPECT_THAT(AskSlowly(2, i), SizeIs(2));
  }
  auto surplus = AskSlowly(2, 9);
  ASSERT_THAT(surplus, SizeIs(1));
  EXPECT_EQ(surplus[0].relay, refusal(9));
  for (uint64_t i = 0; i < QueryRelay::kMaxQueriesOfNode; ++i) {
    EXPECT_THAT(Ask(2, 10 + i), SizeIs(2));
  }
  surplus = Ask(2, 19);
  ASSERT_THAT(surplus, SizeIs(1));
  EXPECT_EQ(surplus[0].relay, refusal(19));
  EXPECT_THAT(AskSlowly(1, 1), SizeIs(2)) << "another node has requests of its own";
}

TEST_F(QueryRelayTest, FewLongAnswersShareTheRoomOfAll) {
  for (PeerId peer = 4; peer <= 4000; ++peer) relay.Add(peer, "node");
  auto out = AskSlowly(2, 7, 64);
  ASSERT_THAT(out, SizeIs(3999));
  const size_t room = out[0].relay.room;
  EXPECT_GT(room, size_t{40} << 10);
  EXPECT_LT(64 * room, QueryRelay::kMaxQueryBytes);
  const std::string answer(room, 'x');
  size_t passed = 0;
  for (PeerId peer = 3; peer <= 100; ++peer)
    passed += Reply(peer, out[0].relay.number, answer).size();
  EXPECT_GE(passed, 64u);
  EXPECT_LE(passed * room, QueryRelay::kMaxQueryBytes) << "more long answers than announced";
  EXPECT_EQ(AskSlowly(1, 8, 0)[0].relay.room, Relay::kMaxBytes);
  EXPECT_EQ(AskSlowly(3, 8, 5'000)[0].relay.room, QueryRelay::kMaxQueryBytes / 4000);
}

TEST_F(QueryRelayTest, AnAnswerThatIsTooLongIsMissing) {
  uint64_t number = Ask(2, 7)[0].relay.number;
  EXPECT_THAT(Reply(1, number, std::string(Relay::kMaxBytes + 1, 'x')), IsEmpty());
  for (PeerId peer = 4; peer <= 100; ++peer) relay.Add(peer, "node");
  auto asked = Ask(2, 8);
  auto out = Reply(1, asked[0].relay.number, std::string(asked[0].relay.room + 1, 'x'));
  EXPECT_THAT(out, IsEmpty());
}

}  // namespace
}  // namespace rankrun::agent
