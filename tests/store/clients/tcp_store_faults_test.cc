#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "store/clients/tcp_store.h"
#include "tests/store/clients/fake_server.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

const TcpStoreOptions kPatient{.connect_timeout = 20s, .reply_timeout = 20s, .asks_why = false};

Error ConnectError(const std::string& host, uint16_t port,
                   std::chrono::milliseconds timeout = 500ms) {
  auto store = TcpStore::Connect(host, port, {.connect_timeout = timeout});
  EXPECT_FALSE(store);
  return store ? Error{} : store.error();
}

std::unique_ptr<TcpStore> ConnectTo(const FakeServer& server, const TcpStoreOptions& options) {
  auto store = TcpStore::Connect("127.0.0.1", server.port(), options);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

TEST(TcpStoreConnectTest, ANameWithoutAnAddressIsNotFound) {
  // A label longer than 63 letters is invalid, so no name server is asked.
  Error error = ConnectError(std::string(70, 'x'), 29500);
  EXPECT_EQ(error.code, ErrorCode::kNotFound) << error.message;
  EXPECT_THAT(error.message, HasSubstr("look up xxx"));
}

TEST(TcpStoreConnectTest, ARefusedConnectionIsPeerLost) {
  Fd bound = BoundSocket();
  uint16_t port = SocketAddress::LocalOf(bound.get())->port();
  Error error = ConnectError("127.0.0.1", port);
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("connect to the store at 127.0.0.1:"),
                    HasSubstr("Connection refused: nobody listens there (attempt ")));
}

// As behind a firewall that drops packets.
TEST(TcpStoreConnectTest, AnAddressThatDoesNotAnswerIsATimeOut) {
  FullListener listener;
  TimePoint start = MonotonicClock().Now();
  Error error = ConnectError("127.0.0.1", listener.port());
  EXPECT_LT(MonotonicClock().Now() - start, 20s);
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("connect to 127.0.0.1:"),
                    HasSubstr("no answer: no such host, a firewall in between, or more connections "
                              "than its listener can take (attempt 1, after ")));
}

TEST(TcpStoreConnectTest, AServerThatDoesNotAnswerIsATimeOut) {
  FakeServer server([](FakeConnection& c, int) { c.AwaitEnd(); });
  Error error = ConnectError("127.0.0.1", server.port());
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(error.message, HasSubstr("timed out: it accepts connections but does not answer, "
                                       "so it hangs or is not a store server"));
}

TEST(TcpStoreConnectTest, AServerThatClosesIsPeerLost) {
  FakeServer server([](FakeConnection& c, int) { c.Receive(10); });
  Error error = ConnectError("127.0.0.1", server.port());
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_THAT(error.message, HasSubstr("the peer closed the connection: it does not accept "
                                       "clients from here, or is not a store server"));
}

TEST(TcpStoreConnectTest, AServerThatResetsIsPeerLost) {
  FakeServer server([](FakeConnection& c, int) {
    c.Receive(10);
    c.Reset();
  });
  Error error = ConnectError("127.0.0.1", server.port());
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_THAT(error.message, HasSubstr("Connection reset by peer: it does not accept clients from "
                                       "here, or is not a store server"));
}

TEST(TcpStoreConnectTest, AServerOfAnotherProtocolIsReportedAtOnce) {
  FakeServer server([](FakeConnection& c, int number) {
    EXPECT_EQ(number, 0);
    c.Receive(10);
    c.Send("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  Error error = ConnectError("127.0.0.1", server.port(), 1h);
  EXPECT_EQ(error.code, ErrorCode::kProtocol);
  EXPECT_THAT(error.message,
              HasSubstr("it is not a store server: its answer begins with \"HTTP\""));
}

TEST(TcpStoreConnectTest, RetriesUntilTheServerIsThere) {
  FakeServer server([](FakeConnection& c, int number) {
    if (number == 0) return;
    if (number == 1) return c.Reset();
    c.Greet();
    c.AwaitEnd();
  });
  ConnectTo(server, kPatient);
}

TEST(TcpStoreConnectTest, TheGreetingIsValidateAndAPingWithOurPid) {
  FakeServer server([](FakeConnection& c, int) {
    EXPECT_EQ(c.Receive(5), std::string("\x00\xce\xf7\x85\x3c", 5));
    auto pid = static_cast<uint32_t>(getpid());
    std::string ping = EncodeRequest(PingRequest{pid});
    EXPECT_EQ(c.Receive(5), ping);
    c.Send(ping.substr(1));
    c.AwaitEnd();
  });
  ConnectTo(server, kPatient);
}

// They close the connection after a command that they do not know.
TEST(TcpStoreConnectTest, AServerThatKnowsNoPingIsAskedForItsKeys) {
  FakeServer server([](FakeConnection& c, int number) {
    c.Receive(EncodeValidate().size());
    const std::string command = c.Receive(1);
    if (command == EncodeRequest(PingRequest{0}).substr(0, 1)) return;
    EXPECT_EQ(number, 1);
    EXPECT_EQ(command, EncodeRequest(GetNumKeysRequest{}));
    c.Send(std::string("\3\0\0\0\0\0\0\0", 8));
    c.AwaitEnd();
  });
  ConnectTo(server, kPatient);
}

TEST(TcpStoreConnectTest, AServerThatAnswersWithoutKeysIsPeerLost) {
  FakeServer server([](FakeConnection& c, int number) {
    c.Receive(EncodeValidate().size() + 1);
    if (number % 2 == 1) c.Send("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  Error error = ConnectError("127.0.0.1", server.port());
  EXPECT_EQ(error.code, ErrorCode::kPeerLost) << error.message;
}

// As a server with a list of allowed addresses: closed before anything is read.
TEST(TcpStoreConnectTest, AServerThatClosesAtOnceIsPeerLost) {
  FakeServer server([](FakeConnection&, int) {});
  Error error = ConnectError("127.0.0.1", server.port());
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_THAT(error.message,
              HasSubstr(": it does not accept clients from here, or is not a store server"));
}

TEST(TcpStoreConnectTest, TheErrorNamesEachOfSeveralAddresses) {
  auto addresses = SocketAddress::Resolve("localhost", 0);
  if (!addresses || addresses->size() < 2) GTEST_SKIP() << "localhost has one address here";
  FakeServer server([](FakeConnection&, int) {});
  Error error = ConnectError("localhost", server.port());
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_THAT(error.message, AllOf(HasSubstr("connect to [::1]:"), HasSubstr("; "),
                                   HasSubstr("it does not accept clients from here")));
}

TEST(TcpStoreConnectTest, AnAddressThatNeverAnswersLeavesTimeForTheOthers) {
  FakeServer server([](FakeConnection& connection, int) {
    connection.Greet();
    connection.AwaitEnd();
  });
  auto addresses = SocketAddress::Resolve("localhost", server.port());
  ASSERT_TRUE(addresses) << addresses.error().message;
  const SocketAddress& first = addresses->front();
  Fd silent(socket(first.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (addresses->size() < 2 || bind(silent.get(), first.raw(), first.raw_size()) != 0) {
    GTEST_SKIP() << "localhost has no free address before 127.0.0.1";
  }
  ASSERT_EQ(listen(silent.get(), 16), 0);
  auto store = TcpStore::Connect("localhost", server.port(), {.connect_timeout = 6s});
  EXPECT_TRUE(store) << store.error().message;
}

TEST(TcpStoreFaultsTest, AMissingReplyBreaksTheStore) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.AwaitEnd();
  });
  auto store = ConnectTo(server, {.connect_timeout = 20s, .reply_timeout = 50ms});
  auto first = store->Add("n", 1);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(first.error().message,
              AllOf(HasSubstr("add to key n: no reply from the store at 127.0.0.1:"),
                    HasSubstr("within 0.050 s")));
  auto later = store->Check(Keys{"k"});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(later.error().message,
              HasSubstr("check key k: the connection broke earlier: no reply from the store"));
}

TEST(TcpStoreFaultsTest, AHalfReplyBreaksTheStore) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.Send("\x01\x02\x03");
    c.AwaitEnd();
  });
  auto store = ConnectTo(server, {.connect_timeout = 20s, .reply_timeout = 50ms});
  EXPECT_EQ(store->Add("n", 1).error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(store->Add("n", 1).error().code, ErrorCode::kPeerLost);
}

TEST(TcpStoreFaultsTest, ACancelThatIsNotAnsweredBreaksTheStore) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.AwaitEnd();
  });
  auto store = ConnectTo(server, {.connect_timeout = 20s, .reply_timeout = 50ms});
  auto came = store->Wait(Keys{"k"}, 1ms);
  ASSERT_FALSE(came);
  EXPECT_THAT(came.error().message, HasSubstr("wait for key k: no reply from the store at"));
  EXPECT_EQ(store->Add("n", 1).error().code, ErrorCode::kPeerLost);
}

// The release was in flight when the client gave up.
TEST(TcpStoreFaultsTest, AReleaseThatCrossesTheCancelCounts) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(WaitRequest{{"/k"}});
    c.ReceiveRequest(CancelWaitRequest{});
    c.Send(std::string_view("\0\1", 2));
    c.ReceiveRequest(AddRequest{"/n", 1});
    c.Send(std::string_view("\5\0\0\0\0\0\0\0", 8));
    c.AwaitEnd();
  });
  auto store = ConnectTo(server, kPatient);
  EXPECT_TRUE(store->Wait(Keys{"k"}, 1ms));
  EXPECT_EQ(*store->Add("n", 1), 5);
}

// One CHECK for each key, all sent together.
TEST(TcpStoreFaultsTest, KeysThatAreSetJustAfterTheCancelCount) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(WaitRequest{{"/a", "/b"}});
    c.ReceiveRequest(CancelWaitRequest{});
    c.Send("\1");
    c.ReceiveRequest(CheckRequest{{"/a"}});
    c.ReceiveRequest(CheckRequest{{"/b"}});
    c.Send(std::string_view("\0\0", 2));
    c.AwaitEnd();
  });
  EXPECT_TRUE(ConnectTo(server, kPatient)->Wait(Keys{"a", "b"}, 1ms));
}

TEST(TcpStoreFaultsTest, AServerLostDuringTheSearchForMissingKeysIsPeerLost) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(WaitRequest{{"/a", "/b"}});
    c.ReceiveRequest(CancelWaitRequest{});
    c.Send("\1");
    c.ReceiveRequest(CheckRequest{{"/a"}});
    c.Send("\1");
  });
  auto came = ConnectTo(server, kPatient)->Wait(Keys{"a", "b"}, 1ms);
  ASSERT_FALSE(came);
  EXPECT_EQ(came.error().code, ErrorCode::kPeerLost);
}

TEST(TcpStoreFaultsTest, InvalidRepliesBreakTheStore) {
  const std::string answers[] = {"\x07", "\x01", std::string("\0\0", 2)};
  for (const std::string& answer : answers) {
    FakeServer server([&](FakeConnection& c, int) {
      c.Greet();
      c.ReceiveRequest(WaitRequest{{"/k"}});
      if (answer.size() > 1) c.ReceiveRequest(CancelWaitRequest{});
      c.Send(answer);
      c.AwaitEnd();
    });
    auto store = ConnectTo(server, kPatient);
    auto came = store->Wait(Keys{"k"}, answer.size() > 1 ? 1ms : 20s);
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, ErrorCode::kProtocol) << came.error().message;
    EXPECT_EQ(store->Add("n", 1).error().code, ErrorCode::kPeerLost);
  }
}

TEST(TcpStoreFaultsTest, AnAbsurdLengthTakesNoMemory) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(WaitRequest{{"/k"}});
    c.Send(std::string_view("\0", 1));
    c.ReceiveRequest(GetRequest{"/k"});
    c.Send(std::string(8, '\x7f') + "a few bytes");
  });
  auto store = ConnectTo(server, kPatient);
  auto value = store->Get("k", 20s);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kPeerLost);
}

TEST(TcpStoreFaultsTest, AReplyInSinglePiecesIsPutTogether) {
  FakeServer server([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(WaitRequest{{"/k"}});
    c.Send(std::string_view("\0", 1));
    c.ReceiveRequest(GetRequest{"/k"});
    for (char byte : std::string("\5\0\0\0\0\0\0\0value", 13)) c.Send({&byte, 1});
    c.AwaitEnd();
  });
  EXPECT_EQ(*ConnectTo(server, kPatient)->Get("k", 20s), "value");
}

TEST(TcpStoreFaultsTest, AServerThatDoesNotReadIsPeerLost) {
  std::mutex done;
  std::unique_lock lock(done);
  FakeServer server([&](FakeConnection& c, int) {
    c.Greet();
    std::lock_guard wait(done);
  });
  auto store = ConnectTo(server, {.connect_timeout = 20s, .reply_timeout = 50ms});
  auto set = store->Set("k", std::string(64 << 20, 'v'));
  lock.unlock();
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(set.error().message, HasSubstr("set key k: no reply from the store"));
}

TEST(TcpStoreFaultsTest, AnAbsurdCountOfKeysTakesNoMemory) {
  FakeServer fake([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(ListKeysRequest{});
    c.Send(std::string(8, '\x7f') + std::string(8, '\0'));
  });
  auto store = TcpStore::Connect("127.0.0.1", fake.port(), kPatient);
  ASSERT_TRUE(store);
  auto keys = (*store)->ListKeys();
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().code, ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace rankrun::store
