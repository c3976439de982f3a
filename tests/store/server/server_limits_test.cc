#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/mutex.h"
#include "tests/store/server/log_lines.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

// Limits on addresses, connections and requests, and the server's statistics.

namespace rankrun::store {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

nlohmann::json StatsOf(const ServerThread& server) {
  RawClient client(Loopback(server.port()));
  client.Ask(GetRequest{std::string(kStatsKey)});
  return nlohmann::json::parse(client.ReceiveValue());
}

TEST(ServerLimitsTest, AClientFromElsewhereIsRefused) {
  LogLines log;
  ServerOptions options;
  options.admission.allowed = {*AddressRange::Parse("10.0.0.0/8")};
  ServerThread server(options);
  RawClient client(Loopback(server.port()), /*validate=*/false);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 0; }));
  EXPECT_THAT(log.Get(), Contains(AllOf(HasSubstr(client.local().ToString()),
                                        HasSubstr("in none of the ranges that are allowed"))));
}

TEST(ServerLimitsTest, AClientFromAListedRangeIsServed) {
  ServerOptions options;
  options.admission.allowed = {*AddressRange::Parse("10.0.0.0/8"),
                               *AddressRange::Parse("127.0.0.0/8")};
  ServerThread server(options);
  EXPECT_TRUE(RawClient(Loopback(server.port())).IsServed());
}

TEST(ServerLimitsTest, SilentConnectionsOfOneAddressAreLimited) {
  LogLines log;
  ServerOptions options;
  options.admission.silent_per_address = 2;
  ServerThread server(options);
  RawClient first(Loopback(server.port()), /*validate=*/false);
  RawClient second(Loopback(server.port()), /*validate=*/false);
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 2; }));
  EXPECT_TRUE(RawClient(Loopback(server.port()), /*validate=*/false).IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("has 2 connections already that have sent nothing")));
  first.Send(EncodeValidate());
  EXPECT_TRUE(first.IsServed());
  RawClient third(Loopback(server.port()));
  EXPECT_TRUE(third.IsServed());
}

TEST(ServerLimitsTest, OnlyAnIncompleteRequestTimesOut) {
  LogLines log;
  ServerOptions options;
  options.half_request_timeout = milliseconds(20);
  ServerThread server(options);
  RawClient silent(Loopback(server.port()), /*validate=*/false);
  RawClient idle(Loopback(server.port()));
  EXPECT_TRUE(idle.IsServed());
  RawClient half_greeting(Loopback(server.port()), /*validate=*/false);
  half_greeting.Send(EncodeValidate().substr(0, 3));
  EXPECT_TRUE(half_greeting.IsClosed());
  RawClient half(Loopback(server.port()));
  half.Send(EncodeRequest(PingRequest{1}) + EncodeRequest(GetRequest{"/key"}).substr(0, 5));
  EXPECT_EQ(half.Receive(4), Encoded(PingReply{1}));
  EXPECT_TRUE(half.IsClosed());
  EXPECT_THAT(
      log.Get(),
      Contains(AllOf(
          HasSubstr(half.local().ToString()),
          HasSubstr("less than 4096 bytes of an incomplete request arrived within 0.020 s"))));
  EXPECT_TRUE(idle.IsServed());
  silent.Send(EncodeValidate());
  EXPECT_TRUE(silent.IsServed());
  EXPECT_EQ(StatsOf(server)["closed"]["stalled"], 2);
}

TEST(ServerLimitsTest, ARequestOverTheLimitIsRefusedBeforeItHasArrived) {
  LogLines log;
  ServerOptions options;
  options.limits = {.key_bytes = 10, .value_bytes = 1000, .request_bytes = 2500};
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  std::string value(1000, 'v');
  client.Ask(CompareSetRequest{"/k", value, value});
  EXPECT_EQ(client.Receive(1008), Encoded(ValueReply{value}));
  const std::string request =
      EncodeRequest(MultiSetRequest{{{"/a", value}, {"/b", value}, {"/c", value}}});
  client.Send(request.substr(0, request.size() - value.size()));
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("MULTI_SET of key \"c\" with 3006 bytes or more is "
                                            "over the limit of 2500")));
}

TEST(ServerLimitsTest, AClientMayAskWhyItsRequestWasRefused) {
  LogLines log;
  Mutex mutex;
  std::vector<ServerOptions::Refusal> refusals;
  ServerOptions options;
  options.limits.value_bytes = 8;
  options.on_refusal = [&](const auto& refusal) {
    MutexLock lock(mutex);
    refusals.push_back(refusal);
  };
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/model\n", "123456789"});
  EXPECT_TRUE(client.IsClosed()) << "at the latest after 2 s";
  const std::string why = R"(SET of key "model\n" with a value of 9 bytes is over the limit of 8)";
  {
    MutexLock lock(mutex);
    ASSERT_EQ(refusals.size(), 1u);
    EXPECT_EQ(refusals[0].client.ToString(), client.local().ToString());
    EXPECT_EQ(refusals[0].why, why);
  }
  EXPECT_THAT(log.Get(), testing::IsEmpty());
  const std::string key = "rankrun/refusal/" + client.local().ToString();
  RawClient other(Loopback(server.port()));
  other.Ask(CheckRequest{{key}});
  EXPECT_EQ(other.Receive(1), Encoded(CheckReply::kReady));
  other.Ask(GetRequest{key});
  EXPECT_EQ(other.ReceiveValue(), why);
  server.OnLoop([&](Server& s) { s.NameRefusal(client.local(), "rank 3: " + why); });
  other.Ask(GetRequest{key});
  EXPECT_EQ(other.ReceiveValue(), "rank 3: " + why);
  other.Ask(CheckRequest{{"rankrun/refusal/127.0.0.1:1"}});
  EXPECT_EQ(other.Receive(1), Encoded(CheckReply::kNotReady));
}

TEST(ServerLimitsTest, ARefusedClientStaysUntilItsRefusalHasAName) {
  Mutex mutex;
  std::vector<SocketAddress> refused;
  ServerOptions options;
  options.limits.value_bytes = 8;
  options.on_refusal = [&](const auto& refusal) {
    MutexLock lock(mutex);
    refused.push_back(refusal.client);
  };
  ServerThread server(options);
  RawClient first(Loopback(server.port()));
  RawClient second(Loopback(server.port()));
  const TimePoint asked = MonotonicClock().Now();
  first.Ask(SetRequest{"/k", "123456789"});
  second.Ask(SetRequest{"/k", "123456789"});
  EXPECT_TRUE(server.Eventually([&](Server&) {
    MutexLock lock(mutex);
    return refused.size() == 2;
  }));
  server.OnLoop([&](Server& s) { s.NameRefusal(second.local(), "rank 1: too large"); });
  EXPECT_TRUE(second.IsClosed());
  size_t open = 0;
  server.OnLoop([&](Server& s) { open = s.Stats().connections; });
  if (MonotonicClock().Now() - asked > std::chrono::seconds(2))
    GTEST_SKIP() << "the machine is too slow";
  EXPECT_EQ(open, 1u);
}

TEST(ServerLimitsTest, OverTheTrafficLimitTheLargestConnectionIsClosed) {
  LogLines log;
  ServerOptions options;
  options.largest_traffic_bytes = 1'000'000;
  ServerThread server(options);
  RawClient large(Loopback(server.port()));
  RawClient small(Loopback(server.port()));
  std::string request = EncodeRequest(SetRequest{"/k", std::string(800'000, 'v')});
  large.Send(request.substr(0, request.size() - 1));
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.Stats().traffic_bytes > 799'000; }));
  small.Send(request.substr(0, 300'000));
  EXPECT_TRUE(large.IsClosed());
  small.Send(request.substr(300'000));
  EXPECT_TRUE(small.IsServed());
  EXPECT_THAT(log.Get(), Contains(AllOf(HasSubstr(large.local().ToString()),
                                        HasSubstr("over the limit of 1000000"))));
}

TEST(ServerLimitsTest, ALimitForRequestsMustHoldTwoValues) {
  Loop loop;
  ServerOptions options;
  options.addresses = {{Loopback()}};
  options.limits.value_bytes = 200 << 20;
  auto server = Server::Listen(loop, options);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(server.error().message, HasSubstr(", for a key and two values"));
}

TEST(ServerLimitsTest, AZeroTimeoutForIncompleteRequestsIsInvalid) {
  Loop loop;
  ServerOptions options;
  options.addresses = {{Loopback()}};
  options.half_request_timeout = milliseconds(0);
  auto server = Server::Listen(loop, options);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
}

TEST(ServerLimitsTest, ValuesOfAHundredMegabytesWorkByOption) {
  ServerOptions options;
  options.limits.value_bytes = 100'000'000;
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  std::string value(100'000'000, 'v');
  client.Ask(SetRequest{"/k", value});
  client.Ask(GetRequest{"/k"});
  EXPECT_TRUE(client.ReceiveValue() == value);
}

TEST(ServerLimitsTest, ClientsSeeAnEndOfStreamWhateverTheyHaveSent) {
  auto server = std::make_unique<ServerThread>();
  RawClient half(Loopback(server->port()));
  half.Send(EncodeRequest(GetRequest{"/key"}).substr(0, 5));
  RawClient waiter(Loopback(server->port()));
  waiter.Ask(WaitRequest{{"/never"}});
  EXPECT_TRUE(waiter.IsServed());
  server->OnLoop([&](Server& s) {
    // The loop is busy here, so these bytes are unread when the connections
    // close.
    half.Send(std::string(300'000, 'x'));
    waiter.Ask(PingRequest{1});
    s.Reset();
  });
  EXPECT_TRUE(half.IsClosedCleanly());
  EXPECT_TRUE(waiter.IsClosedCleanly());
  RawClient last(Loopback(server->port()));
  EXPECT_TRUE(last.IsServed());
  server.reset();
  EXPECT_TRUE(last.IsClosedCleanly());
}

TEST(ServerStatsTest, ReportsTheContentsAndTheWaits) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(CheckRequest{{std::string(kStatsKey)}});
  EXPECT_EQ(client.Receive(1), Encoded(CheckReply::kReady));
  client.Ask(SetRequest{"/k", "v"});
  client.Ask(SetRequest{"/l", "v"});
  client.Ask(QueuePushRequest{"/q", "v"});
  EXPECT_TRUE(client.IsServed());
  RawClient waiter(Loopback(server.port()));
  waiter.Ask(WaitRequest{{"/k", "/x", "/\xff"}});
  waiter.Ask(WaitRequest{{"/x"}});
  EXPECT_TRUE(waiter.IsServed());

  nlohmann::json stats = StatsOf(server);
  EXPECT_EQ(stats["server"], "rankrun");
  EXPECT_GE(stats["uptime_s"], 0.0);
  EXPECT_EQ(stats["keys"], 2);
  EXPECT_EQ(stats["queues"], 1);
  EXPECT_GT(stats["bytes"], 0);
  EXPECT_EQ(stats["largest_bytes"], ServerOptions{}.largest_store_bytes);
  EXPECT_EQ(stats["connections"], 3);
  EXPECT_EQ(stats["requests"], nlohmann::json::parse(R"({"CHECK": 1, "SET": 2, "QUEUE_PUSH": 1,
                                                         "PING": 2, "WAIT": 2, "GET": 1})"));
  EXPECT_EQ(stats["waiters"], 3);
  ASSERT_EQ(stats["waits"].size(), 2u);
  EXPECT_EQ(stats["waits"][0]["key"], "/x");
  EXPECT_EQ(stats["waits"][0]["waiters"], 2);
  EXPECT_EQ(stats["waits"][0]["peers"][0], waiter.local().ToString());
  EXPECT_EQ(stats["waits"][1]["key"], "/\xEF\xBF\xBD");  // invalid UTF-8 is replaced
  EXPECT_EQ(stats["waits_omitted"], 0);
}

TEST(ServerStatsTest, NamesOnlyTheMostWaitedKeys) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  std::vector<std::string> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = "/" + std::to_string(i);
  client.Ask(WaitRequest{keys});
  client.Ask(WaitRequest{{"/777"}});
  EXPECT_TRUE(client.IsServed());
  nlohmann::json stats = StatsOf(server);
  EXPECT_EQ(stats["waits"].size(), 256u);
  EXPECT_EQ(stats["waits"][0]["key"], "/777");
  EXPECT_EQ(stats["waits_omitted"], 1000 - 256);
  EXPECT_EQ(stats["waiters"], 1001);
}

TEST(ServerStatsTest, TheStatsAreNotAKey) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(GetNumKeysRequest{});
  EXPECT_EQ(client.Receive(8), Encoded(NumberReply{0}));
  client.Ask(ListKeysRequest{});
  EXPECT_EQ(client.Receive(8), Encoded(KeysReply{}));
  client.Ask(GetRequest{"/" + std::string(kStatsKey)});
  EXPECT_EQ(client.Receive(8), Encoded(ValueReply{""}));
}

}  // namespace
}  // namespace rankrun::store
