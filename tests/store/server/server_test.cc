#include "store/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/store/server/log_lines.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

TEST(ServerTest, AnswersAClient) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/k", "value"});
  client.Ask(GetRequest{"/k"});
  EXPECT_EQ(client.ReceiveValue(), "value");
  client.Ask(AddRequest{"/n", 5});
  EXPECT_EQ(client.Receive(8), Encoded(NumberReply{5}));
  client.Ask(CheckRequest{{"/n", "/z"}});
  EXPECT_EQ(client.Receive(1), Encoded(CheckReply::kNotReady));
  client.Ask(DeleteKeyRequest{"/k"});
  EXPECT_EQ(client.Receive(8), Encoded(NumberReply{1}));
}

TEST(ServerTest, CountsRequestsThatChangeSomething) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(AddRequest{"/n", 0});
  client.Ask(GetRequest{"/n"});
  client.Ask(SetRequest{"/k", "value"});
  client.Ask(AddRequest{"/n", 5});
  client.Ask(DeleteKeyRequest{"/k"});
  client.Receive(8 + Encoded(ValueReply{"0"}).size() + 8 + 8);
  uint64_t changes = 0;
  server.OnLoop([&](Server& served) { changes = served.changes(); });
  EXPECT_EQ(changes, 3U);
}

TEST(ServerTest, AnswersManyRequestsOfOneSegmentInTheirOrder) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  std::string requests;
  std::string replies;
  for (int i = 1; i <= 1000; ++i) {
    requests += EncodeRequest(AddRequest{"/n", 1}) + EncodeRequest(GetRequest{"/n"});
    replies += Encoded(NumberReply{i}) + Encoded(ValueReply{std::to_string(i)});
  }
  client.Send(requests);
  EXPECT_EQ(client.Receive(replies.size()), replies);
}

TEST(ServerTest, AnswersARequestThatArrivesByteByByte) {
  ServerThread server;
  RawClient client(Loopback(server.port()), /*validate=*/false);
  for (char byte : EncodeValidate() + EncodeRequest(CompareSetRequest{"/c", "", "x"})) {
    client.Send({&byte, 1});
  }
  EXPECT_EQ(client.ReceiveValue(), "x");
}

TEST(ServerTest, OneClientReleasesAnother) {
  ServerThread server;
  RawClient waiter(Loopback(server.port()));
  RawClient other(Loopback(server.port()));
  waiter.Ask(WaitRequest{{"/a", "/b"}});
  EXPECT_TRUE(waiter.IsServed());
  other.Ask(SetRequest{"/a", ""});
  EXPECT_TRUE(other.IsServed());
  EXPECT_TRUE(waiter.IsServed());
  other.Ask(SetRequest{"/b", ""});
  EXPECT_EQ(waiter.Receive(1), Encoded(WaitReply::kStopWaiting));
}

TEST(ServerTest, HalfARequestOfOneClientDelaysNobody) {
  ServerThread server;
  RawClient slow(Loopback(server.port()));
  std::string request = EncodeRequest(GetRequest{"/k"});
  slow.Send(std::string_view(request).substr(0, 3));
  RawClient other(Loopback(server.port()));
  EXPECT_TRUE(other.IsServed());
  slow.Send(std::string_view(request).substr(3));
  EXPECT_EQ(slow.Receive(8), Encoded(ValueReply{""}));
}

TEST(ServerTest, AWaiterThatLeavesIsForgotten) {
  ServerThread server;
  auto waiter = std::make_unique<RawClient>(Loopback(server.port()));
  waiter->Ask(WaitRequest{{"/k"}});
  EXPECT_TRUE(waiter->IsServed());
  waiter.reset();
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 0; }));
  RawClient other(Loopback(server.port()));
  other.Ask(SetRequest{"/k", ""});
  EXPECT_TRUE(other.IsServed());
}

TEST(ServerTest, AProtocolErrorClosesThatClientOnly) {
  LogLines log;
  ServerThread server;
  RawClient good(Loopback(server.port()));
  RawClient bad(Loopback(server.port()));
  bad.Ask(SetRequest{"/k", "kept"});
  bad.Send("\x13");
  EXPECT_TRUE(bad.IsClosed());
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 1; }));
  EXPECT_THAT(log.Get(), Contains(AllOf(HasSubstr(bad.local().ToString()),
                                        HasSubstr("operation 19 is unknown"))));
  EXPECT_THAT(log.Get(), SizeIs(1));
  good.Ask(GetRequest{"/k"});
  EXPECT_EQ(good.ReceiveValue(), "kept");
}

TEST(ServerTest, RepliesBeforeAProtocolErrorAreSent) {
  LogLines log;
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Send(EncodeRequest(AddRequest{"/n", 3}) + "\xff");
  EXPECT_EQ(client.Receive(8), Encoded(NumberReply{3}));
  EXPECT_TRUE(client.IsClosed());
}

TEST(ServerTest, AClientOfAnotherProtocolIsClosed) {
  LogLines log;
  ServerThread server;
  RawClient http(Loopback(server.port()), /*validate=*/false);
  http.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(http.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("before VALIDATE")));
}

TEST(ServerTest, AddToANonNumberClosesTheClient) {
  LogLines log;
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/k", "text"});
  client.Ask(AddRequest{"/k", 1});
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("ADD to key /k: its value is not a number")));
}

TEST(ServerTest, AFloodOfErrorsIsSummedUp) {
  LogLines log;
  ServerThread server;
  constexpr int kClients = 20;
  for (int i = 0; i < kClients; ++i) {
    RawClient bad(Loopback(server.port()));
    bad.Send("\x13");
    EXPECT_TRUE(bad.IsClosed());
  }
  auto is_summary = [](const std::string& line) {
    return line.find("more connections within a second") != std::string::npos;
  };
  EXPECT_TRUE(server.Eventually([&](Server&) {
    auto lines = log.Get();
    return std::any_of(lines.begin(), lines.end(), is_summary);
  }));
  EXPECT_LT(log.Get().size(), size_t{kClients});
}

TEST(ServerTest, ClientsOverTheLimitAreRefused) {
  LogLines log;
  ServerOptions options;
  options.admission.connections = 2;
  ServerThread server(options);
  RawClient first(Loopback(server.port()));
  auto second = std::make_unique<RawClient>(Loopback(server.port()));
  EXPECT_TRUE(first.IsServed());
  EXPECT_TRUE(second->IsServed());
  RawClient third(Loopback(server.port()));
  EXPECT_TRUE(third.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("there are 2 connections already")));
  second.reset();
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 1; }));
  EXPECT_TRUE(RawClient(Loopback(server.port())).IsServed());
  EXPECT_TRUE(first.IsServed());
}

TEST(ServerTest, AFullStoreClosesTheClientThatNeedsMore) {
  LogLines log;
  ServerOptions options;
  options.largest_store_bytes = 10'000;
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/a", std::string(9'000, 'a')});
  EXPECT_TRUE(client.IsServed());
  client.Ask(SetRequest{"/b", std::string(9'000, 'b')});
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("SET of key \"b\": the store is full")));
  server.OnLoop([](Server& s) { EXPECT_EQ(s.key_count(), 1u); });
}

TEST(ServerTest, AStoreAboveANewLimitKeepsItsDataAndTakesNoMore) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/a", std::string(9'000, 'a')});
  EXPECT_TRUE(client.IsServed());
  server.OnLoop([](Server& s) { s.LimitMemory(5'000); });
  client.Ask(GetRequest{"/a"});
  EXPECT_EQ(client.ReceiveValue().size(), 9'000u);
  client.Ask(SetRequest{"/b", "b"});
  EXPECT_TRUE(client.IsClosed());
  server.OnLoop([](Server& s) { EXPECT_EQ(s.key_count(), 1u); });
}

TEST(ServerTest, TooManyIncompleteBytesCloseTheClient) {
  LogLines log;
  ServerOptions options;
  options.largest_traffic_bytes = 1'000'000;
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  std::string request = EncodeRequest(SetRequest{"/k", std::string(3'000'000, 'v')});
  request.pop_back();
  client.Send(request);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("over the limit of 1000000")));
  EXPECT_TRUE(RawClient(Loopback(server.port())).IsServed());
}

TEST(ServerTest, ANewLimitIsOneOfIncompleteBytesToo) {
  LogLines log;
  ServerThread server;
  server.OnLoop([](Server& s) { s.LimitMemory(1'000'000); });
  RawClient client(Loopback(server.port()));
  std::string request = EncodeRequest(SetRequest{"/k", std::string(3'000'000, 'v')});
  request.pop_back();
  client.Send(request);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("over the limit of 1000000")));
}

// Without back-pressure the replies would take 200 MB, far over the limit, and
// the server would close the client.
TEST(ServerTest, AClientThatDoesNotFetchItsRepliesIsNotRead) {
  ServerOptions options;
  options.unsent_bytes = 100'000;
  options.largest_traffic_bytes = 1'000'000;
  ServerThread server(options);
  RawClient slow(Loopback(server.port()));
  std::string value(20'000, 'v');
  constexpr int kRequests = 10'000;  // more than one read returns
  std::string requests = EncodeRequest(SetRequest{"/k", value});
  for (int i = 0; i < kRequests; ++i) requests += EncodeRequest(GetRequest{"/k"});
  slow.Send(requests + EncodeRequest(SetRequest{"/end", ""}));

  RawClient other(Loopback(server.port()));
  EXPECT_TRUE(other.IsServed());
  server.OnLoop([](Server& s) { EXPECT_EQ(s.key_count(), 1u); });
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(slow.ReceiveValue().size(), value.size()) << i;
  EXPECT_TRUE(slow.IsServed());
  server.OnLoop([](Server& s) { EXPECT_EQ(s.key_count(), 2u); });
}

// If the kernel takes all replies at once, no event reports that there is room
// again.
TEST(ServerTest, RequestsBehindAFullOutboxAreHandledWithoutMoreInput) {
  ServerOptions options;
  options.unsent_bytes = 1;
  ServerThread server(options);
  RawClient client(Loopback(server.port()));
  std::string requests;
  std::string replies;
  for (int i = 1; i <= 500; ++i) {
    requests += EncodeRequest(AddRequest{"/n", 1});
    replies += Encoded(NumberReply{i});
  }
  client.Send(requests);
  EXPECT_EQ(client.Receive(replies.size()), replies);
}

TEST(ServerTest, LargeValuesComeBackWhole) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  std::string value(WireLimits{}.value_bytes, 'a');
  for (size_t i = 0; i < value.size(); i += 4096) value[i] = static_cast<char>(i >> 12);
  client.Ask(SetRequest{"/k", value});
  client.Ask(GetRequest{"/k"});
  EXPECT_TRUE(client.ReceiveValue() == value);
}

TEST(ServerTest, ResetClosesEverybodyAndForgetsEverything) {
  ServerThread server;
  RawClient waiter(Loopback(server.port()));
  RawClient other(Loopback(server.port()));
  waiter.Ask(WaitRequest{{"/never"}});
  EXPECT_TRUE(waiter.IsServed());
  other.Ask(SetRequest{"/k", "v"});
  EXPECT_TRUE(other.IsServed());
  server.OnLoop([](Server& s) {
    s.Reset();
    EXPECT_EQ(s.connection_count(), 0u);
    EXPECT_EQ(s.key_count(), 0u);
  });
  EXPECT_TRUE(waiter.IsClosed());
  EXPECT_TRUE(other.IsClosed());
  RawClient fresh(Loopback(server.port()));
  fresh.Ask(CheckRequest{{"/k"}});
  EXPECT_EQ(fresh.Receive(1), Encoded(CheckReply::kNotReady));
}

TEST(ServerTest, ResetRightAfterAProtocolErrorIsSafe) {
  LogLines log;
  ServerThread server;
  for (int round = 0; round < 50; ++round) {
    RawClient bad(Loopback(server.port()));
    bad.Send("\x13");
    server.OnLoop([](Server& s) { s.Reset(); });
  }
  EXPECT_TRUE(RawClient(Loopback(server.port())).IsServed());
}

TEST(ServerTest, ReleasesHundredsOfClientsAtOnce) {
  ServerThread server;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(std::make_unique<RawClient>(Loopback(server.port())));
    clients.back()->Ask(WaitRequest{{"/go"}});
    clients.back()->Ask(AddRequest{"/here", 1});
  }
  for (auto& client : clients) ASSERT_EQ(client->Receive(8).size(), 8u);
  RawClient starter(Loopback(server.port()));
  starter.Ask(SetRequest{"/go", ""});
  for (auto& client : clients) {
    ASSERT_EQ(client->Receive(1), Encoded(WaitReply::kStopWaiting));
  }
}

TEST(ServerTest, LimitsThatCannotWorkAreRefused) {
  Loop loop;
  for (size_t unsent_bytes : {size_t{0}, SIZE_MAX}) {
    ServerOptions options;
    options.addresses = {{Loopback()}};
    options.unsent_bytes = unsent_bytes;
    auto server = Server::Listen(loop, options);
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code, ErrorCode::kInvalid);
  }
}

TEST(ServerTest, APortThatIsTakenIsAnError) {
  ServerThread first;
  Loop loop;
  ServerOptions options;
  options.addresses = {{Loopback(first.port())}};
  auto second = Server::Listen(loop, options);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("start a store server: listen on 127.0.0.1:"),
                                            HasSubstr("Address already in use")));
}

}  // namespace
}  // namespace rankrun::store
