#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/server/log_lines.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"
#include "tests/store/wire/wire_decode.h"

// A server and clients of PyTorch up to about 2.1, as captured from 1.13.1.

namespace rankrun::store {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

struct OldClient : RawClient {
  explicit OldClient(const ServerThread& server)
      : RawClient(Loopback(server.port()), /*validate=*/false) {}
  void SendHex(std::string_view hex) { Send(FromHex(hex)); }
};

constexpr const char* kSetK = "00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 76 61 6c";
constexpr const char* kWaitK = "05 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b";
constexpr const char* kGetK = "02 02 00 00 00 00 00 00 00 2f 6b";
constexpr const char* kNumKeys = "06";

TEST(ServerDialectsTest, AnOldClientIsAnswered) {
  ServerThread server;
  OldClient client(server);
  client.SendHex("03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00");
  EXPECT_EQ(client.Receive(8), FromHex("01 00 00 00 00 00 00 00"));
  client.SendHex(kSetK);
  client.SendHex(kWaitK);
  EXPECT_EQ(client.Receive(1), FromHex("00"));
  client.SendHex(kGetK);
  EXPECT_EQ(client.ReceiveValue(), "val");
  client.SendHex(kNumKeys);
  EXPECT_EQ(client.Receive(8), FromHex("02 00 00 00 00 00 00 00"));
  client.SendHex("08 02 00 00 00 00 00 00 00 2f 6b");
  EXPECT_EQ(client.Receive(8), FromHex("01 00 00 00 00 00 00 00"));
}

TEST(ServerDialectsTest, OldAndCurrentClientsShareOneStore) {
  ServerThread server;
  OldClient old(server);
  RawClient current(Loopback(server.port()));
  old.SendHex(kWaitK);
  current.Ask(SetRequest{"/k", "val"});
  EXPECT_EQ(old.Receive(1), FromHex("00"));
  old.SendHex(kGetK);
  EXPECT_EQ(old.ReceiveValue(), "val");
}

TEST(ServerDialectsTest, TheSilentConnectionOfAnOldClientStaysOpen) {
  ServerThread server;
  OldClient callbacks(server);
  OldClient client(server);
  client.SendHex(kNumKeys);
  EXPECT_EQ(client.Receive(8).size(), 8u);
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 2; }));
  callbacks.SendHex(kNumKeys);
  EXPECT_EQ(callbacks.Receive(8).size(), 8u);
}

// It cannot cancel the WAIT, and would take the reply to it for the reply to
// another request.
TEST(ServerDialectsTest, TheNextRequestOfAnOldClientEndsItsWait) {
  ServerThread server;
  OldClient old(server);
  RawClient current(Loopback(server.port()));
  old.SendHex(kWaitK);
  old.SendHex(kNumKeys);
  EXPECT_EQ(old.Receive(8), FromHex("00 00 00 00 00 00 00 00"));
  current.Ask(SetRequest{"/k", "val"});
  EXPECT_TRUE(current.IsServed());
  old.SendHex(kGetK);
  EXPECT_EQ(old.ReceiveValue(), "val");
}

TEST(ServerDialectsTest, ACurrentClientsWaitOutlastsItsNextRequest) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Ask(WaitRequest{{"/k"}});
  EXPECT_TRUE(client.IsServed());
  client.Ask(QueuePushRequest{"/k", "m"});
  EXPECT_EQ(client.Receive(1), FromHex("00"));
}

TEST(ServerDialectsTest, CurrentClientsHaveQueuesListsAndBarriers) {
  ServerThread server;
  RawClient one(Loopback(server.port()));
  RawClient two(Loopback(server.port()));
  one.Ask(BarrierRequest{"/b", 2});
  EXPECT_TRUE(one.IsServed());
  two.Ask(BarrierRequest{"/b", 2});
  EXPECT_EQ(one.Receive(1), FromHex("00"));
  EXPECT_EQ(two.Receive(1), FromHex("00"));
  one.Ask(QueuePushRequest{"/q", "m"});
  one.Ask(QueuePopRequest{"/q"});
  EXPECT_EQ(one.Receive(8), FromHex("01 00 00 00 00 00 00 00"));
  EXPECT_EQ(one.ReceiveValue(), "m");
  one.Ask(ListKeysRequest{});
  EXPECT_EQ(one.Receive(8), FromHex("01 00 00 00 00 00 00 00"));
  EXPECT_EQ(one.ReceiveValue(), "/b");
  one.Ask(MultiGetRequest{{"/b", "/none"}});
  EXPECT_EQ(one.ReceiveValue(), "2");
  EXPECT_EQ(one.ReceiveValue(), "");
  EXPECT_TRUE(one.IsServed());
}

constexpr const char* kWatchK = "07 02 00 00 00 00 00 00 00 2f 6b";

TEST(ServerDialectsTest, AnOldClientReceivesTheNoticesOfItsWatches) {
  ServerThread server;
  OldClient callbacks(server);
  RawClient other(Loopback(server.port()));
  callbacks.SendHex(kWatchK);
  EXPECT_EQ(callbacks.Receive(1), FromHex("03"));
  other.Ask(SetRequest{"/k", "one"});
  std::string created = FromHex(
      "01 02 00 00 00 00 00 00 00 2f 6b 00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 6f 6e 65");
  EXPECT_EQ(callbacks.Receive(created.size()), created);
  other.Ask(SetRequest{"/k", "two"});
  std::string updated = FromHex(
      "00 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 6f 6e 65 "
      "03 00 00 00 00 00 00 00 74 77 6f");
  EXPECT_EQ(callbacks.Receive(updated.size()), updated);
  other.Ask(DeleteKeyRequest{"/k"});
  std::string deleted = FromHex(
      "02 02 00 00 00 00 00 00 00 2f 6b 03 00 00 00 00 00 00 00 74 77 6f 00 00 00 00 00 00 00 00");
  EXPECT_EQ(callbacks.Receive(deleted.size()), deleted);
}

// A later request ends the WAITs of an old client, not its watches.
TEST(ServerDialectsTest, OtherRequestsOfAnOldClientKeepItsWatches) {
  ServerThread server;
  OldClient old(server);
  old.SendHex(kWatchK);
  EXPECT_EQ(old.Receive(1), FromHex("03"));
  old.SendHex(kNumKeys);
  EXPECT_EQ(old.Receive(8).size(), 8u);
  old.SendHex(kSetK);
  EXPECT_EQ(old.Receive(30).size(), 30u);
}

// Each change of a value of 1 MB causes a notice with the old and the new
// value.
TEST(ServerDialectsTest, AWatcherThatDoesNotReadIsClosed) {
  LogLines log;
  ServerThread server;
  OldClient callbacks(server);
  callbacks.SendHex(kWatchK);
  EXPECT_EQ(callbacks.Receive(1), FromHex("03"));
  RawClient other(Loopback(server.port()));
  other.Ask(SetRequest{"/k", std::string(1'000'000, 'v')});
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += EncodeRequest(AppendRequest{"/k", "v"});
  other.Send(requests);
  EXPECT_TRUE(other.IsServed());
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 1; }));
  EXPECT_THAT(log.Get(), Contains(AllOf(HasSubstr(callbacks.local().ToString()),
                                        HasSubstr("does not fetch the notices"))));
}

}  // namespace
}  // namespace rankrun::store
