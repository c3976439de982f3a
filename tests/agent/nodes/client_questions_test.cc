#include "agent/nodes/client_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TimePoint kStart{std::chrono::hours(1)};

constexpr Duration kPatience = std::chrono::seconds(15);
constexpr Duration kNodeTimeout = std::chrono::seconds(1);

StoreClient Client(uint64_t id) { return {id, "10.0.0.2", 40'000, "10.0.0.1", 29'500}; }

TEST(ClientQuestionsTest, EachQuestionIsSentOnce) {
  ClientQuestions questions(kNodeTimeout);
  questions.Add(Client(1), kStart);
  questions.Add(Client(2), kStart);
  auto sent = questions.Take();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(sent[0].clients, SizeIs(2));
  EXPECT_THAT(questions.Take(), IsEmpty());
}

TEST(ClientQuestionsTest, OnlyClientsThatWaitGetAVerdict) {
  ClientQuestions questions(kNodeTimeout);
  questions.Add(Client(1), kStart);
  EXPECT_THAT(questions.OnVerdicts({{{1, "no"}, {2, ""}}}), SizeIs(1));
  EXPECT_THAT(questions.OnVerdicts({{{1, ""}}}), IsEmpty()) << "the first verdict counts";
  EXPECT_EQ(questions.deadline(), std::nullopt);
}

TEST(ClientQuestionsTest, QuestionsWithoutAnAnswerAreSentOverTheNextConnection) {
  ClientQuestions questions(kNodeTimeout);
  for (uint64_t id : {1U, 2U}) questions.Add(Client(id), kStart);
  questions.Take();
  questions.OnVerdicts({{{1, ""}}});
  questions.Add(Client(3), kStart);
  questions.OnLinkUp();
  auto sent = questions.Take();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].clients, (std::vector{Client(2), Client(3)}));
}

TEST(ClientQuestionsTest, AClientWaitsForALimitedTime) {
  ClientQuestions questions(kNodeTimeout);
  questions.Add(Client(1), kStart);
  questions.Add(Client(2), kStart + Duration(1));
  auto late = questions.OnTick(kStart + kPatience);
  ASSERT_THAT(late, SizeIs(1));
  EXPECT_EQ(late[0].id, 1u);
  EXPECT_THAT(late[0].why, HasSubstr("the coordinator has not said within 15.0 s whose it is"));
  EXPECT_EQ(questions.deadline(), kStart + Duration(1) + kPatience);
}

// The coordinator waits for a node until it is lost.
TEST(ClientQuestionsTest, TheCoordinatorMayTakeTheNodeTimeout) {
  ClientQuestions questions(std::chrono::seconds(60));
  questions.Add(Client(1), kStart);
  EXPECT_EQ(questions.deadline(), kStart + std::chrono::seconds(65));
}

TEST(ClientQuestionsTest, OneMessageAsksForALimitedNumber) {
  ClientQuestions questions(kNodeTimeout);
  for (uint64_t id = 0; id <= WhoseClients::kMaxClients; ++id) questions.Add(Client(id), kStart);
  auto sent = questions.Take();
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_THAT(sent[0].clients, SizeIs(WhoseClients::kMaxClients));
  EXPECT_THAT(sent[1].clients, SizeIs(1));
}

}  // namespace
}  // namespace rankrun::agent
