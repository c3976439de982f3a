#include "agent/worker/file_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAcquire =
    R"({"version": 1, "pid": 42, "scope_id": "train.py#7", "expiration_time": 1700000000.25, "signal": 9})";

std::string Problem(std::string_view line) {
  auto request = ParseTimerRequest(line);
  return request ? "none" : request.error().message;
}

// Returns kAcquire with one member replaced.
std::string With(const std::string& before, const std::string& after) {
  std::string line = kAcquire;
  line.replace(line.find(before), before.size(), after);
  return line;
}

TEST(TimerRequestTest, AcquiresATimer) {
  auto request = ParseTimerRequest(kAcquire);
  ASSERT_TRUE(request);
  EXPECT_EQ(
      *request,
      (TimerRequest{
          .pid = 42, .scope = "train.py#7", .expires = 1700000000.25, .signal_number = SIGKILL}));
}

TEST(TimerRequestTest, ANegativeTimeReleasesIt) {
  auto request = ParseTimerRequest(With("1700000000.25", "-1"));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->expires, std::nullopt);
}

TEST(TimerRequestTest, TimesMayBeIntegersAndSignalsMayBeZeroOrLess) {
  EXPECT_EQ(ParseTimerRequest(With("1700000000.25", "1700000000"))->expires, 1.7e9);
  EXPECT_EQ(ParseTimerRequest(With(": 9", ": 0"))->signal_number, 0);
  EXPECT_EQ(ParseTimerRequest(With(": 9", ": -3"))->signal_number, -3);
}

TEST(TimerRequestTest, AnInvalidRequestIsRefusedWithTheReason) {
  EXPECT_EQ(Problem(""), "not a JSON object");
  EXPECT_EQ(Problem("{"), "not a JSON object");
  EXPECT_EQ(Problem("[1]"), "not a JSON object");
  EXPECT_EQ(Problem(R"({"pid": 3})"), "\"version\" is not 1");
  EXPECT_EQ(Problem(With(": 1,", ": 2,")), "\"version\" is not 1");
  EXPECT_EQ(Problem(With("42", "0")), "\"pid\" is not the number of a process");
  EXPECT_EQ(Problem(With("42", "-1")), "\"pid\" is not the number of a process");
  EXPECT_EQ(Problem(With("42", "4294967338")), "\"pid\" is not the number of a process");
  EXPECT_EQ(Problem(With("42", "\"42\"")), "\"pid\" is not the number of a process");
  EXPECT_EQ(Problem(With("\"train.py#7\"", "7")), "\"scope_id\" is not a text");
  EXPECT_EQ(Problem(With("1700000000.25", "null")), "\"expiration_time\" is not a number");
  EXPECT_EQ(Problem(With("1700000000.25", "1e999")), "not a JSON object");
  EXPECT_EQ(Problem(With(": 9", ": 65")), "\"signal\" is not a signal");
  EXPECT_EQ(Problem(With(": 9", ": 9.5")), "\"signal\" is not a signal");
}

struct FileTimersTest : testing::Test {
  void Set(pid_t pid, const std::string& scope, int seconds_from_now) {
    EXPECT_TRUE(timers.Set(Make(pid, scope, seconds_from_now)));
  }
  FileTimers::Timer Make(pid_t pid, const std::string& scope, int seconds_from_now) {
    return {.pid = pid,
            .scope = scope,
            .expires = now + seconds(seconds_from_now),
            .signal_number = SIGKILL,
            .start_time = 1};
  }
  std::vector<std::string> ExpiredAfter(int seconds_from_now) {
    std::vector<std::string> scopes;
    for (auto& timer : timers.TakeExpired(now + seconds(seconds_from_now))) {
      scopes.push_back(timer.scope);
    }
    return scopes;
  }
  TimePoint now{};
  FileTimers timers;
};

TEST_F(FileTimersTest, WithoutTimersNothingExpires) {
  EXPECT_EQ(timers.Next(), std::nullopt);
  EXPECT_THAT(ExpiredAfter(1'000), ElementsAre());
}

TEST_F(FileTimersTest, ATimerExpiresAtItsTimeAndOnce) {
  Set(1, "a", 10);
  EXPECT_EQ(timers.Next(), now + seconds(10));
  EXPECT_THAT(ExpiredAfter(9), ElementsAre());
  EXPECT_THAT(ExpiredAfter(10), ElementsAre("a"));
  EXPECT_THAT(ExpiredAfter(10), ElementsAre());
  EXPECT_EQ(timers.Next(), std::nullopt);
}

TEST_F(FileTimersTest, AReleasedTimerDoesNotExpire) {
  Set(1, "a", 10);
  Set(2, "a", 20);
  timers.Release(1, "a");
  timers.Release(3, "none");
  EXPECT_EQ(timers.Next(), now + seconds(20));
}

TEST_F(FileTimersTest, TheSameScopeAgainReplacesTheTimer) {
  Set(1, "a", 10);
  Set(1, "a", 30);
  EXPECT_EQ(timers.size(), 1u);
  EXPECT_EQ(timers.Next(), now + seconds(30));
}

TEST_F(FileTimersTest, AnExpiredProcessLosesItsOtherTimers) {
  Set(1, "late", 8);
  Set(1, "first", 5);
  Set(1, "never", 500);
  Set(2, "other", 6);
  EXPECT_THAT(ExpiredAfter(10), ElementsAre("first", "other"));
  EXPECT_EQ(timers.size(), 0u);
}

TEST_F(FileTimersTest, TheNumberOfTimersIsLimited) {
  for (size_t i = 0; i < FileTimers::kMax; ++i) Set(1, std::to_string(i), 5);
  auto more = timers.Set(Make(1, "more", 5));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kExhausted);
  Set(1, "7", 9);  // replaced
  timers.Clear();
  Set(1, "more", 5);
}

}  // namespace
}  // namespace rankrun::agent
