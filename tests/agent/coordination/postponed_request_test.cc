#include "agent/coordination/postponed_request.h"

#include <gtest/gtest.h>

#include <random>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr bool kHosting = true;
constexpr bool kJoining = true;

std::string WhyOf(const std::optional<MemberEvent>& request) {
  if (!request) return "";
  if (const auto* close = std::get_if<CloseWanted>(&*request)) return "close " + close->cause.text;
  return "leave " + std::get<LeaveWanted>(*request).why;
}

struct PostponedRequestTest : testing::Test {
  std::string Leave(const std::string& why, bool is_hosting, bool is_joining) {
    return WhyOf(request_.OnRequest(LeaveWanted{why}, is_hosting, is_joining, now_));
  }
  std::string Close(const std::string& why, bool is_hosting, bool is_joining) {
    return WhyOf(request_.OnRequest(CloseWanted{{.text = why}}, is_hosting, is_joining, now_));
  }
  std::string Message() { return WhyOf(request_.OnMessage()); }
  std::string Tick() { return WhyOf(request_.OnTick(now_)); }

  TimePoint now_{std::chrono::hours(1)};
  PostponedRequest request_{seconds(10)};
};

TEST_F(PostponedRequestTest, ANodeWithoutTheCoordinatorRequestsAtOnce) {
  EXPECT_EQ(Leave("a", !kHosting, kJoining), "leave a");
  EXPECT_EQ(Close("b", !kHosting, !kJoining), "close b");
  EXPECT_EQ(request_.deadline(), std::nullopt);
  EXPECT_EQ(Message(), "");
}

TEST_F(PostponedRequestTest, AHostThatHasJoinedRequestsAtOnce) {
  EXPECT_EQ(Leave("a", kHosting, !kJoining), "leave a");
  EXPECT_EQ(Close("b", kHosting, !kJoining), "close b") << "each request counts";
  EXPECT_EQ(request_.deadline(), std::nullopt);
  EXPECT_EQ(Message(), "");
}

TEST_F(PostponedRequestTest, AHostThatJoinsWaitsForTheFirstMessage) {
  EXPECT_EQ(Close("a", kHosting, kJoining), "");
  EXPECT_EQ(request_.deadline(), now_ + seconds(10));
  now_ += seconds(9);
  EXPECT_EQ(Message(), "close a");
  EXPECT_EQ(request_.deadline(), std::nullopt);
  EXPECT_EQ(Message(), "") << "once only";
  now_ += seconds(9);
  EXPECT_EQ(Tick(), "");
}

TEST_F(PostponedRequestTest, AHostThatCannotJoinWaitsNoLongerThanTheLimit) {
  EXPECT_EQ(Leave("a", kHosting, kJoining), "");
  now_ += seconds(10) - milliseconds(1);
  EXPECT_EQ(Tick(), "");
  now_ += milliseconds(1);
  EXPECT_EQ(Tick(), "leave a");
  EXPECT_EQ(request_.deadline(), std::nullopt);
  EXPECT_EQ(Tick(), "");
  EXPECT_EQ(Message(), "") << "once only";
}

TEST_F(PostponedRequestTest, TheFirstOfSeveralRequestsCountsAndSetsTheLimit) {
  EXPECT_EQ(Leave("a", kHosting, kJoining), "");
  now_ += seconds(4);
  EXPECT_EQ(Close("b", kHosting, kJoining), "");
  EXPECT_EQ(request_.deadline(), now_ + seconds(6));
  EXPECT_EQ(Message(), "leave a");
  EXPECT_EQ(Message(), "");
}

TEST_F(PostponedRequestTest, ALaterRequestIsPostponedAgainWhileTheHostJoins) {
  Leave("a", kHosting, kJoining);
  now_ += seconds(10);
  EXPECT_EQ(Tick(), "leave a");
  EXPECT_EQ(Close("b", kHosting, kJoining), "");
  EXPECT_EQ(request_.deadline(), now_ + seconds(10));
  EXPECT_EQ(Message(), "close b");
}

TEST_F(PostponedRequestTest, WithoutARequestNothingIsDue) {
  EXPECT_EQ(Message(), "");
  EXPECT_EQ(Tick(), "");
  EXPECT_EQ(request_.deadline(), std::nullopt);
}

// Each order of requests, messages and ticks: a postponed request comes out once, in time.
TEST_F(PostponedRequestTest, InAnyOrderARequestIsNeitherLostNorRepeatedNorLate) {
  std::minstd_rand random(1);
  std::string held;
  TimePoint limit;
  for (int event = 0; event < 20'000; ++event) {
    now_ += milliseconds(random() % 3'000);
    const std::string why = std::to_string(event);
    switch (random() % 4) {
      case 0:
        EXPECT_EQ(Leave(why, kHosting, kJoining), "");
        if (held.empty()) limit = now_ + seconds(10);
        if (held.empty()) held = "leave " + why;
        break;
      case 1:
        EXPECT_EQ(Close(why, !kHosting, kJoining), "close " + why);
        break;
      case 2:
        EXPECT_EQ(Message(), std::exchange(held, ""));
        break;
      default:
        EXPECT_EQ(Tick(), held.empty() || now_ < limit ? "" : std::exchange(held, ""));
    }
    EXPECT_EQ(request_.deadline(), held.empty() ? std::nullopt : std::optional(limit));
  }
}

}  // namespace
}  // namespace rankrun::agent
