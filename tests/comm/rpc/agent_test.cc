#include "comm/rpc/agent.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/base/support.h"
#include "tests/comm/rpc/agents.h"

namespace rankrun::comm::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Outcome::Kind;

constexpr milliseconds kLong = seconds(60);

Blob BlobOf(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}};
}

std::string TextOf(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size()};
}

// An end of a call counts as unfinished for a moment after it has run.
bool BecomesQuiet(const Agent& agent) {
  TimePoint deadline = MonotonicClock().Now() + kLong;
  while (agent.unfinished() > 0) {
    if (MonotonicClock().Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

Message Echo(const Caller& caller, const Message& arguments) {
  return {std::to_string(caller.id) + ":" + arguments.head, arguments.blobs};
}

TEST(RpcAgentTest, AReplyHasTheValueOfTheMethod) {
  Agents agents(3);
  agents.Register("echo", Echo);
  for (int callee : {0, 1, 2}) {
    Outcome outcome = agents[1].CallAndWait(callee, "echo", {"text", {BlobOf("data")}}, kLong);
    EXPECT_EQ(outcome.kind, Kind::kReply) << outcome.text;
    EXPECT_EQ(outcome.reply.head, "1:text");
    ASSERT_EQ(outcome.reply.blobs.size(), 1U);
    EXPECT_EQ(TextOf(outcome.reply.blobs[0]), "data");
  }
}

TEST(RpcAgentTest, AnExceptionComesBackAsText) {
  Agents agents(2);
  agents.Register("fail", [](const Caller&, const Message&) -> Message {
    throw std::runtime_error("no disk");
  });
  agents.Register("odd", [](const Caller&, const Message&) -> Message { throw 7; });
  for (int callee : {0, 1}) {
    Outcome outcome = agents[0].CallAndWait(callee, "fail", {}, kLong);
    EXPECT_EQ(outcome.kind, Kind::kRaised);
    EXPECT_EQ(outcome.text, "no disk");
    EXPECT_EQ(agents[0].CallAndWait(callee, "odd", {}, kLong).text,
              "an exception that is no std::exception");
  }
}

TEST(RpcAgentTest, AnUnknownMethodIsNamedWithTheKnownOnes) {
  Agents agents(2);
  agents.Register("add", Echo);
  agents.Register("sub", Echo);
  Outcome outcome = agents[0].CallAndWait(1, "mul", {}, kLong);
  EXPECT_EQ(outcome.kind, Kind::kUnknown);
  EXPECT_EQ(outcome.text, "there is no method mul: want add, sub");
}

TEST(RpcAgentTest, ATimeoutEndsTheCallOnly) {
  Agents agents(2);
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  agents.Register("wait", [release](const Caller&, const Message&) {
    release.wait();
    return Message{"late"};
  });
  agents.Register("echo", Echo);
  Outcome outcome = agents[0].CallAndWait(1, "wait", {}, milliseconds(20));
  EXPECT_EQ(outcome.kind, Kind::kTimeout);
  EXPECT_THAT(outcome.text, HasSubstr("no reply after 0."));
  EXPECT_EQ(agents[0].CallAndWait(1, "echo", {"x"}, kLong).reply.head, "0:x");
  released.set_value();  // the late reply is dropped
  EXPECT_EQ(agents[0].CallAndWait(1, "echo", {"y"}, kLong).reply.head, "0:y");
  EXPECT_TRUE(BecomesQuiet(agents[0]));
}

// The queue does not grow with calls that nobody waits for.
TEST(RpcAgentTest, AMethodDoesNotBeginAfterTheTimeoutOfItsCall) {
  Agents agents(2, 1);
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  std::atomic<int> begun = 0;
  auto count = [&begun](const Caller&, const Message&) {
    begun += 1;
    return Message{};
  };
  agents.Register("wait", [release](const Caller&, const Message&) {
    release.wait();
    return Message{};
  });
  agents.Register("count", count);
  agents.Register("~!free", count);
  std::promise<void> first_ended;
  agents[0].Call(1, "wait", {}, kLong, [&](const Outcome&) { first_ended.set_value(); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(agents[0].CallAndWait(1, "count", {}, milliseconds(10)).kind, Kind::kTimeout);
  }
  EXPECT_EQ(agents[0].Ping(1, kLong).kind, Kind::kReply) << "the others have arrived";
  EXPECT_EQ(agents[0].CallAndWait(1, "~!free", {}, milliseconds(10)).kind, Kind::kTimeout);
  released.set_value();
  first_ended.get_future().wait();
  EXPECT_EQ(agents[0].CallAndWait(1, "count", {}, kLong).kind, Kind::kReply);
  EXPECT_EQ(begun.load(), 2) << "the last call, and the method that frees something";
}

TEST(RpcAgentTest, ALimitOfZeroIsNone) {
  Agents agents(2);
  agents.Register("echo", Echo);
  EXPECT_EQ(agents[0].CallAndWait(1, "echo", {"x"}, milliseconds(0)).reply.head, "0:x");
}

// Each method of a chain waits for the next one: more threads are needed than there are.
TEST(RpcAgentTest, MethodsMayCallOtherWorkers) {
  Agents agents(2, 2);
  for (int here : {0, 1}) {
    auto index = static_cast<size_t>(here);
    EXPECT_TRUE(agents.methods[index].Add("down", [&agents, here, index](const Caller&,
                                                                         const Message& m) {
      int left = std::stoi(m.head);
      if (left == 0) return Message{"end"};
      return agents[index].CallAndWait(1 - here, "down", {std::to_string(left - 1)}, kLong).reply;
    }));
  }
  EXPECT_EQ(agents[0].CallAndWait(1, "down", {"60"}, kLong).reply.head, "end");
  EXPECT_EQ(agents[0].CallAndWait(0, "down", {"5"}, kLong).reply.head, "end");
}

TEST(RpcAgentTest, ManyCallsAreInFlight) {
  Agents agents(3);
  agents.Register("echo", Echo);
  constexpr int kCalls = 10'000;
  std::atomic<int> right = 0;
  std::latch all(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    std::string text = std::to_string(i);
    agents[0].Call(1 + i % 2, "echo", {text}, kLong, [&, text](Outcome outcome) {
      right += outcome.reply.head == "0:" + text;
      all.count_down();
    });
  }
  all.wait();
  EXPECT_EQ(right, kCalls);
  EXPECT_TRUE(BecomesQuiet(agents[0]));
}

TEST(RpcAgentTest, AllWorkersCallAllOthersAtOnce) {
  Agents agents(4);
  agents.Register("echo", Echo);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 500; ++i) {
        std::string text = std::to_string(i);
        Outcome outcome = agents[static_cast<size_t>(caller)].CallAndWait(
            (caller + i) % 4, "echo", {text, {BlobOf(std::string(static_cast<size_t>(i), 'x'))}},
            kLong);
        if (outcome.reply.head != std::to_string(caller) + ":" + text) wrong += 1;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(RpcAgentTest, LargeBlobsPassBothWaysAtOnce) {
  Agents agents(2);
  agents.Register("echo", Echo);
  const std::string large(20'000'000, 'x');
  auto call = [&](size_t from) {
    return agents[from].CallAndWait(static_cast<int>(1 - from), "echo", {"l", {BlobOf(large)}},
                                    kLong);
  };
  auto other = std::async(std::launch::async, call, 1);
  Outcome one = call(0);
  ASSERT_EQ(one.kind, Kind::kReply) << one.text;
  EXPECT_TRUE(TextOf(one.reply.blobs[0]) == large);
  EXPECT_TRUE(TextOf(other.get().reply.blobs[0]) == large);
}

TEST(RpcAgentTest, TheEndOfAWorkerEndsTheCallsToIt) {
  Agents agents(3);
  std::promise<void> called;
  agents.Register("echo", Echo);
  std::promise<Outcome> ended;
  std::promise<void> released;
  agents.Register("hold", [&](const Caller&, const Message&) {
    called.set_value();
    released.get_future().wait();
    return Message{};
  });
  agents[0].Call(1, "hold", {}, kLong, [&](Outcome outcome) { ended.set_value(outcome); });
  called.get_future().wait();
  agents[1].Close();
  Outcome outcome = ended.get_future().get();
  EXPECT_EQ(outcome.kind, Kind::kLost);
  EXPECT_EQ(outcome.text, "lost worker b: it has shut down RPC");
  EXPECT_EQ(agents[0].CallAndWait(1, "echo", {}, kLong).kind, Kind::kLost);
  EXPECT_EQ(agents[0].CallAndWait(2, "echo", {"x"}, kLong).reply.head, "0:x");
  EXPECT_EQ(agents[1].CallAndWait(2, "echo", {"x"}, kLong).text, "RPC of this worker has ended");
  released.set_value();
}

TEST(RpcAgentTest, TheEndOfThisWorkerEndsItsCalls) {
  Agents agents(2);
  std::promise<void> called, released;
  agents.Register("hold", [&](const Caller&, const Message&) {
    called.set_value();
    released.get_future().wait();
    return Message{};
  });
  std::promise<Outcome> ended;
  agents[0].Call(1, "hold", {}, kLong, [&](Outcome outcome) { ended.set_value(outcome); });
  called.get_future().wait();
  agents.End(0);
  EXPECT_EQ(ended.get_future().get().kind, Kind::kEnded);
  released.set_value();
}

TEST(RpcAgentTest, FewThreadsCarryOutManyCalls) {
  Agents agents(2, 2);
  agents.Register("echo", Echo);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(agents[0].CallAndWait(1, "echo", {"x"}, kLong).reply.head, "0:x");
  }
  EXPECT_LE(agents[0].threads().size(), 3);
  EXPECT_LE(agents[1].threads().size(), 3);
}

}  // namespace
}  // namespace rankrun::comm::rpc
