#include "agent/nodes/client_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr TimePoint kStart{std::chrono::hours(1)};
constexpr PeerId kStore = 1, kA = 2, kB = 3;
constexpr Duration kTimeout = std::chrono::seconds(10);

StoreClient From(uint64_t id, const std::string& address) {
  return {id, address, 40'000, "10.0.0.1", 29'500};
}

struct ClientRelayTest : testing::Test {
  ClientRelayTest() {
    relay.Add(kStore, 101, "store");
    relay.Add(kA, 102, "a");
    relay.Add(kB, 103, "b");
    relay.SetAddresses(kStore, {"10.0.0.1"});
    relay.SetAddresses(kA, {"10.0.0.2", "fd00::2"});
    relay.SetAddresses(kB, {"10.0.0.3", "10.0.0.9"});
  }
  // Returns the question to `peer` among `messages`.
  static WhoseClients QuestionTo(PeerId peer, const ClientRelay::Messages& messages) {
    for (const auto& [to, message] : messages) {
      const auto* question = std::get_if<WhoseClients>(&message);
      if (to == peer && question != nullptr) return *question;
    }
    return {};
  }
  static ClientVerdicts AnswerTo(PeerId peer, const ClientRelay::Messages& messages) {
    for (const auto& [to, message] : messages) {
      const auto* answer = std::get_if<ClientVerdicts>(&message);
      if (to == peer && answer != nullptr) return *answer;
    }
    return {};
  }

  ClientRelay relay{std::chrono::seconds(1)};
};

TEST_F(ClientRelayTest, TheNodeWithTheAddressIsAsked) {
  auto asked = relay.OnQuestion(kStore, {{From(7, "10.0.0.2"), From(8, "fd00::2")}}, kStart);
  ASSERT_THAT(asked, SizeIs(1));
  auto question = QuestionTo(kA, asked);
  ASSERT_THAT(question.clients, SizeIs(2));
  auto answer = relay.OnVerdicts(
      kA, {{{question.clients[0].id, ""}, {question.clients[1].id, "it belongs to user 7", true}}});
  EXPECT_EQ(AnswerTo(kStore, answer),
            (ClientVerdicts{{{7, ""}, {8, "node a: it belongs to user 7", true}}}));
  EXPECT_EQ(relay.deadline(), std::nullopt);
}

TEST_F(ClientRelayTest, AClientOfNoNodeIsRefusedAtOnce) {
  auto answer = AnswerTo(kStore, relay.OnQuestion(kStore, {{From(7, "10.0.0.4")}}, kStart));
  EXPECT_EQ(answer, (ClientVerdicts{{{7, "no node has its address"}}}));
}

// Containers behind one address, or several nodes of one host.
TEST_F(ClientRelayTest, OneOfTheNodesThatShareAnAddressHasToVouch) {
  relay.SetAddresses(kB, {"10.0.0.2"});
  auto asked = relay.OnQuestion(kStore, {{From(7, "10.0.0.2"), From(8, "10.0.0.2")}}, kStart);
  auto to_a = QuestionTo(kA, asked), to_b = QuestionTo(kB, asked);
  ASSERT_THAT(to_a.clients, SizeIs(2));
  ASSERT_THAT(to_b.clients, SizeIs(2));
  auto [first, second] = std::pair(to_a.clients[0].id, to_a.clients[1].id);
  EXPECT_THAT(relay.OnVerdicts(kA, {{{first, "no"}, {second, "no"}}}), SizeIs(0));
  EXPECT_EQ(AnswerTo(kStore, relay.OnVerdicts(kB, {{{first, ""}, {second, "never"}}})),
            (ClientVerdicts{{{7, ""}, {8, "node a: no"}}}));
}

TEST_F(ClientRelayTest, OnlyTheNodeThatWasAskedAnswers) {
  auto id = QuestionTo(kA, relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart)).clients[0].id;
  EXPECT_THAT(relay.OnVerdicts(kB, {{{id, ""}}}), SizeIs(0));
  EXPECT_THAT(relay.OnVerdicts(9, {{{id, ""}}}), SizeIs(0)) << "it has said no hello";
  EXPECT_THAT(relay.OnVerdicts(kA, {{{id + 1, ""}}}), SizeIs(0));
  EXPECT_THAT(relay.OnVerdicts(kA, {{{id, ""}}}), SizeIs(1));
  EXPECT_THAT(relay.OnVerdicts(kA, {{{id, ""}}}), SizeIs(0)) << "it has answered";
}

TEST_F(ClientRelayTest, ASilentNodeIsNamed) {
  relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart);
  EXPECT_EQ(relay.deadline(), kStart + kTimeout);
  EXPECT_THAT(relay.OnTick(kStart + kTimeout - Duration(1)), SizeIs(0));
  auto answer = AnswerTo(kStore, relay.OnTick(kStart + kTimeout));
  ASSERT_THAT(answer.verdicts, SizeIs(1));
  EXPECT_EQ(answer.verdicts[0].why, "no answer within 10.0 s from node a");
  EXPECT_EQ(relay.deadline(), std::nullopt);
}

TEST_F(ClientRelayTest, OfManySilentNodesOneIsNamed) {
  for (PeerId peer : {kStore, kA, kB}) relay.SetAddresses(peer, {"10.0.0.2"});
  relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart);
  auto answer = AnswerTo(kStore, relay.OnTick(kStart + kTimeout));
  ASSERT_THAT(answer.verdicts, SizeIs(1));
  EXPECT_EQ(answer.verdicts[0].why, "no answer within 10.0 s from node store and 2 others");
}

// Such a node is not lost, and answers late.
TEST_F(ClientRelayTest, ANodeMayBeSilentForTheNodeTimeout) {
  EXPECT_EQ(ClientRelay::TimeoutFor(std::chrono::seconds(60)), std::chrono::seconds(60));
  EXPECT_EQ(ClientRelay::TimeoutFor(std::chrono::seconds(1)), kTimeout);
}

// The others know only that the connection is none of theirs.
TEST_F(ClientRelayTest, TheNodeThatKnowsTheUserGivesTheReason) {
  for (PeerId peer : {kStore, kA, kB}) relay.SetAddresses(peer, {"10.0.0.2"});
  auto asked = relay.OnQuestion(kStore, {{From(7, "10.0.0.2"), From(8, "10.0.0.2")}}, kStart);
  auto clients = QuestionTo(kA, asked).clients;
  ASSERT_THAT(clients, SizeIs(2));
  auto [first, second] = std::pair(clients[0].id, clients[1].id);
  relay.OnVerdicts(kStore, {{{first, "no"}, {second, "no"}}});
  relay.OnVerdicts(
      kA, {{{first, "it belongs to user 7", true}, {second, "it belongs to user 7", true}}});
  EXPECT_EQ(AnswerTo(kStore, relay.OnVerdicts(kB, {{{first, "no"}}})),
            (ClientVerdicts{{{7, "node a: it belongs to user 7", true}}}));
  EXPECT_EQ(AnswerTo(kStore, relay.OnTick(kStart + kTimeout)),
            (ClientVerdicts{{{8, "node a: it belongs to user 7", true}}}));
}

// A coordinator that was started again hears the addresses of a node when it prepares.
TEST_F(ClientRelayTest, AClientWaitsForNodesThatAreToTellTheirAddresses) {
  relay.Add(4, 104, "c");
  EXPECT_THAT(relay.OnQuestion(kStore, {{From(7, "10.0.0.4"), From(8, "10.0.0.5")}}, kStart),
              SizeIs(0));
  auto question = QuestionTo(4, relay.SetAddresses(4, {"10.0.0.4"}));
  ASSERT_THAT(question.clients, SizeIs(1));
  EXPECT_EQ(AnswerTo(kStore, relay.OnVerdicts(4, {{{question.clients[0].id, ""}}})),
            (ClientVerdicts{{{7, ""}}}));
  EXPECT_EQ(AnswerTo(kStore, relay.OnTick(kStart + kTimeout)),
            (ClientVerdicts{{{8, "no node has its address"}}}));
}

TEST_F(ClientRelayTest, AddressesThatAllHostsHaveAreThoseOfNoNode) {
  for (const char* address : {"127.0.0.1", "::1", "fe80::1", "169.254.0.1"}) {
    relay.SetAddresses(kA, {address});
    auto answer = AnswerTo(kStore, relay.OnQuestion(kStore, {{From(7, address)}}, kStart));
    EXPECT_EQ(answer, (ClientVerdicts{{{7, "no node has its address"}}})) << address;
  }
}

TEST_F(ClientRelayTest, ALimitedNumberOfNodesIsAskedAboutAClient) {
  for (PeerId peer = 10; peer < 10 + ClientRelay::kMaxNodesOfClient; ++peer) {
    relay.Add(peer, 100 + peer, "many");
    relay.SetAddresses(peer, {"10.0.0.10"});
  }
  EXPECT_THAT(relay.OnQuestion(kStore, {{From(7, "10.0.0.10")}}, kStart),
              SizeIs(ClientRelay::kMaxNodesOfClient));
  relay.SetAddresses(kB, {"10.0.0.10"});
  auto answer = AnswerTo(kStore, relay.OnQuestion(kStore, {{From(8, "10.0.0.10")}}, kStart));
  ASSERT_THAT(answer.verdicts, SizeIs(1));
  EXPECT_THAT(answer.verdicts[0].why, HasSubstr("65 nodes have its address"));
}

TEST_F(ClientRelayTest, OnlyTheNodeWithTheStoreMayAsk) {
  relay.SetStore(kStore);
  auto answer = AnswerTo(kB, relay.OnQuestion(kB, {{From(7, "10.0.0.2")}}, kStart));
  EXPECT_EQ(answer, (ClientVerdicts{{{7, "another node has the store of the round"}}}));
  relay.Remove(kStore);
  relay.Add(5, 101, "store");
  EXPECT_THAT(QuestionTo(kA, relay.OnQuestion(5, {{From(7, "10.0.0.2")}}, kStart)).clients,
              SizeIs(1));
}

TEST_F(ClientRelayTest, ANodeThatReconnectsIsAskedAgain) {
  relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart);
  relay.Remove(kA);
  relay.KeepNodes([](uint64_t) { return true; });
  auto later = relay.OnQuestion(kStore, {{From(8, "10.0.0.2")}}, kStart);
  EXPECT_THAT(later, SizeIs(0)) << "the node may come back";
  auto question = QuestionTo(5, relay.Add(5, 102, "a"));
  ASSERT_THAT(question.clients, SizeIs(2));
  auto answer = relay.OnVerdicts(5, {{{question.clients[0].id, ""}}});
  EXPECT_EQ(AnswerTo(kStore, answer), (ClientVerdicts{{{7, ""}}}));
}

TEST_F(ClientRelayTest, ALostNodesAddressIsThatOfNoNode) {
  relay.Remove(kA);
  relay.KeepNodes([](uint64_t node) { return node != 102; });
  auto answer = AnswerTo(kStore, relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart));
  EXPECT_THAT(answer.verdicts, SizeIs(1));
}

TEST_F(ClientRelayTest, TheQuestionsOfALostStoreAreForgotten) {
  auto id = QuestionTo(kA, relay.OnQuestion(kStore, {{From(7, "10.0.0.2")}}, kStart)).clients[0].id;
  relay.Remove(kStore);
  EXPECT_EQ(relay.deadline(), std::nullopt);
  EXPECT_THAT(relay.OnVerdicts(kA, {{{id, ""}}}), SizeIs(0));
}

TEST_F(ClientRelayTest, ANodeMayAskAboutALimitedNumberOfClients) {
  WhoseClients many;
  for (size_t id = 0; id <= ClientRelay::kMaxClientsOfNode; ++id) {
    many.clients.push_back(From(id, "10.0.0.2"));
  }
  auto messages = relay.OnQuestion(kStore, many, kStart);
  EXPECT_EQ(AnswerTo(kStore, messages).verdicts.size(), 1u);
  for (const auto& [to, message] : messages) {
    const auto* question = std::get_if<WhoseClients>(&message);
    if (question == nullptr) continue;
    EXPECT_LE(question->clients.size(), WhoseClients::kMaxClients);
  }
}

}  // namespace
}  // namespace rankrun::agent
