// The tables of RPC: workers, methods and calls.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "comm/rpc/calls.h"
#include "comm/rpc/methods.h"
#include "comm/rpc/roster.h"

namespace rankrun::comm::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::StartsWith;
using Kind = Outcome::Kind;

TEST(RosterTest, FindsWorkersByNameAndId) {
  Roster roster;
  for (const Worker& each : {Worker{0, "a"}, {2, "c:2_X"}, {1, "b-1"}})
    ASSERT_TRUE(roster.Add(each));
  EXPECT_EQ(roster.Find("c:2_X")->id, 2);
  EXPECT_EQ(roster.Find(1)->name, "b-1");
  EXPECT_EQ(roster.Find("d").error().message, "there is no worker d: want a, b-1, c:2_X");
  EXPECT_EQ(roster.Find(3).error().message, "there is no worker with the id 3: want a, b-1, c:2_X");
  roster.Remove(1);
  roster.Remove(1);
  EXPECT_FALSE(roster.Find(1));
  EXPECT_FALSE(roster.Find("b-1"));
  EXPECT_EQ(roster.All().size(), 2U);
}

TEST(RosterTest, NamesAndIdsAreUnique) {
  Roster roster;
  ASSERT_TRUE(roster.Add({0, "a"}));
  EXPECT_EQ(roster.Add({2, "a"}).error().message,
            "workers 0 and 2 have the name a: want different names");
  EXPECT_EQ(roster.Add({0, "b"}).error().message,
            "workers a and b have the id 0: want different ids");
}

TEST(RosterTest, WrongNamesAreRefused) {
  EXPECT_THAT(CheckWorkerName({1, ""}).error().message, StartsWith("the name of worker 1 is \"\""));
  EXPECT_FALSE(CheckWorkerName({1, "a b"}));
  EXPECT_FALSE(CheckWorkerName({1, "\xc3\xa9"}));
  EXPECT_TRUE(CheckWorkerName({1, std::string(127, 'x')}));
  EXPECT_FALSE(CheckWorkerName({1, std::string(128, 'x')}));
}

TEST(RosterTest, AnErrorHasTheFirstNamesOnly) {
  Roster roster;
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(roster.Add({i, "w" + std::to_string(i)}));
  EXPECT_EQ(roster.Find("x").error().message,
            "there is no worker x: want w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 ...");
}

TEST(MethodsTest, HaveOneNameEach) {
  Methods methods;
  auto method = [](const Caller&, const Message& arguments) { return arguments; };
  EXPECT_EQ(methods.Find("add").error().message, "no method is registered here");
  EXPECT_TRUE(methods.Add("add", method));
  EXPECT_TRUE(methods.Add("sub", method));
  EXPECT_EQ(methods.Add("add", method).error().message, "the method add is registered already");
  EXPECT_TRUE(methods.Find("add"));
  EXPECT_EQ(methods.Find("mul").error().message, "there is no method mul: want add, sub");
  EXPECT_FALSE(methods.Add("", method));
  EXPECT_TRUE(methods.Add(std::string(255, 'x'), method));
  EXPECT_FALSE(methods.Add(std::string(256, 'x'), method));
}

TEST(MethodsTest, ARequestHasItsNameAndLimit) {
  Request request;
  for (const std::string& name : {std::string("a"), std::string(255, 'x')}) {
    std::string head = RequestHead("arguments", name, std::chrono::milliseconds(70000));
    ASSERT_TRUE(TakeRequest(head, request));
    EXPECT_EQ(request.method, name);
    EXPECT_EQ(request.limit_ms, 70000U);
    EXPECT_EQ(head, "arguments");
  }
  for (std::string wrong :
       {std::string(), std::string("abc\x05"), std::string("abcdef\x05"), std::string(1, '\0')}) {
    EXPECT_FALSE(TakeRequest(wrong, request)) << wrong;
  }
}

struct CallsTest : testing::Test {
  uint64_t Begin(int callee, TimePoint deadline = TimePoint::max()) {
    return calls.Begin(callee, deadline, [this, callee](const Outcome& outcome) {
      EXPECT_GT(calls.open(), 0U) << "a call is open until its end has returned";
      ended.push_back(std::to_string(callee) + " " +
                      std::to_string(static_cast<int>(outcome.kind)) + " " + outcome.text);
    });
  }
  Calls calls;
  std::vector<std::string> ended;
};

TEST_F(CallsTest, EachEndsOnce) {
  uint64_t one = Begin(1), two = Begin(2);
  EXPECT_EQ(calls.open(), 2U);
  calls.Finish(two, {.text = "x"});
  calls.Finish(two, {.text = "again"});
  calls.Finish(one + 100, {});
  EXPECT_THAT(ended, ElementsAre("2 0 x"));
  EXPECT_EQ(calls.open(), 1U);
  EXPECT_EQ(calls.begun(), 2U);
}

TEST_F(CallsTest, ALostWorkerEndsItsOwnOnly) {
  Begin(1);
  Begin(2);
  Begin(1);
  calls.FinishAllTo(1, {.kind = Kind::kLost, .text = "lost"});
  EXPECT_EQ(ended.size(), 2U);
  EXPECT_EQ(calls.open(), 1U);
  calls.FinishAll({.kind = Kind::kEnded});
  EXPECT_EQ(ended.size(), 3U);
  EXPECT_EQ(calls.open(), 0U);
}

TEST_F(CallsTest, EndAtTheirDeadlines) {
  TimePoint now = MonotonicClock().Now();
  Begin(1, now + seconds(2));
  uint64_t two = Begin(2, now + seconds(1));
  Begin(3, now + seconds(3));
  EXPECT_EQ(calls.FinishLate(now), now + seconds(1));
  calls.Finish(two, {});
  EXPECT_EQ(calls.FinishLate(now + milliseconds(1500)), now + seconds(2));
  EXPECT_EQ(calls.FinishLate(now + milliseconds(2500)), now + seconds(3));
  EXPECT_THAT(ended, ElementsAre("2 0 ", StartsWith("1 3 no reply after 2.5")));
  EXPECT_EQ(calls.FinishLate(now + seconds(3)), TimePoint::max());
}

}  // namespace
}  // namespace rankrun::comm::rpc
