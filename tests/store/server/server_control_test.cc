#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/control_preamble.h"
#include "base/uv/uv_stream.h"
#include "tests/store/server/log_lines.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

// Connections of the control plane on the port of a store.

namespace rankrun::store {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Takes over the control connections of a server, and answers each with
// "taken:" and its first bytes. Its members belong to the loop's thread.
struct Host {
  ServerOptions Options() {
    ServerOptions options;
    options.control = [this](std::unique_ptr<Stream> stream, std::string_view first_bytes) {
      Stream* control_client = streams.emplace_back(std::move(stream)).get();
      control_client->Write("taken:" + std::string(first_bytes));
      control_client->Start({.on_data =
                                 [control_client](std::span<const char> bytes) {
                                   control_client->Write(std::string(bytes.data(), bytes.size()));
                                 },
                             .on_end = [this](const std::optional<Error>&) { ends += 1; },
                             .on_drained = {}});
    };
    return options;
  }
  // Call before the server's loop ends.
  void Leave(ServerThread& server) {
    server.OnLoop([this](Server&) { streams.clear(); });
  }

  std::vector<std::unique_ptr<Stream>> streams;
  int ends = 0;
};

struct ServerControlTest : testing::Test {
  ~ServerControlTest() override { host.Leave(server); }

  RawClient Connect() { return RawClient(Loopback(server.port()), /*validate=*/false); }
  static std::string Taken(std::string_view rest) {
    return "taken:" + std::string(kControlPreamble) + std::string(rest);
  }

  Host host;
  ServerThread server{host.Options()};
  std::string preamble{kControlPreamble};
};

TEST_F(ServerControlTest, AConnectionWithThePreambleIsHandedOver) {
  RawClient client = Connect();
  client.Send(preamble + "\1and more");
  EXPECT_EQ(client.Receive(Taken("\1and more").size()), Taken("\1and more"));
  client.Send("later");
  EXPECT_EQ(client.Receive(5), "later");
  server.OnLoop([](Server& s) {
    EXPECT_EQ(s.connection_count(), 0u);
    EXPECT_EQ(s.Stats().connections, 0u);
  });
}

TEST_F(ServerControlTest, ThePreambleMayArriveByteByByte) {
  RawClient client = Connect();
  for (char byte : preamble) client.Send({&byte, 1});
  EXPECT_EQ(client.Receive(Taken("").size()), Taken(""));
}

TEST_F(ServerControlTest, ClientsOfTheStoreAreServedAsWell) {
  RawClient control_client = Connect();
  control_client.Send(preamble);
  EXPECT_EQ(control_client.Receive(Taken("").size()), Taken(""));
  RawClient client(Loopback(server.port()));
  client.Ask(SetRequest{"/k", "value"});
  client.Ask(GetRequest{"/k"});
  EXPECT_EQ(client.ReceiveValue(), "value");
  RawClient slow = Connect();
  for (char byte : EncodeValidate() + EncodeRequest(GetRequest{"/k"})) slow.Send({&byte, 1});
  EXPECT_EQ(slow.ReceiveValue(), "value");
}

TEST_F(ServerControlTest, AConnectionThatOnlyBeginsLikeThePreambleIsRefused) {
  RawClient client = Connect();
  client.Send(preamble.substr(0, 5) + "x");
  EXPECT_TRUE(client.IsClosed());
  server.OnLoop([this](Server&) { EXPECT_TRUE(host.streams.empty()); });
}

TEST_F(ServerControlTest, AResetClosesClientsAndKeepsControlConnections) {
  RawClient control_client = Connect();
  control_client.Send(preamble);
  EXPECT_EQ(control_client.Receive(Taken("").size()), Taken(""));
  RawClient client(Loopback(server.port()));
  EXPECT_TRUE(client.IsServed());
  server.OnLoop([](Server& s) { s.Reset(); });
  EXPECT_FALSE(client.IsServed());
  control_client.Send("still here");
  EXPECT_EQ(control_client.Receive(10), "still here");
  server.OnLoop([this](Server&) { EXPECT_EQ(host.ends, 0); });
}

TEST_F(ServerControlTest, OnlyClientsAreCheckedByAddress) {
  RawClient early(Loopback(server.port()));
  EXPECT_TRUE(early.IsServed());
  RawClient silent = Connect();
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 2; }));
  server.OnLoop([](Server& s) { s.AdmitOnly({*AddressRange::Parse("10.0.0.0/8")}); });
  EXPECT_FALSE(early.IsServed());
  silent.Send(preamble);
  EXPECT_EQ(silent.Receive(Taken("").size()), Taken(""));
  RawClient late(Loopback(server.port()));
  EXPECT_FALSE(late.IsServed());

  server.OnLoop([](Server& s) { s.AdmitOnly({*AddressRange::Parse("127.0.0.1")}); });
  RawClient again(Loopback(server.port()));
  EXPECT_TRUE(again.IsServed());
  silent.Send("still here");
  EXPECT_EQ(silent.Receive(10), "still here");
}

TEST_F(ServerControlTest, ClientsWaitUntilTheyAreAdmitted) {
  server.OnLoop([](Server& s) { s.AdmitLater(); });
  RawClient client = Connect();
  client.Send(EncodeValidate() + EncodeRequest(SetRequest{"/k", "planted"}));
  RawClient control_client = Connect();
  control_client.Send(preamble);
  EXPECT_EQ(control_client.Receive(Taken("").size()), Taken(""));
  server.OnLoop([](Server& s) {
    EXPECT_EQ(s.key_count(), 0u);
    s.AdmitOnly({*AddressRange::Parse("127.0.0.1")});
  });
  client.Send(EncodeRequest(GetRequest{"/k"}));
  EXPECT_EQ(client.ReceiveValue(), "planted");
}

TEST_F(ServerControlTest, KeysThatAStrangerPlantsBeforeAdmissionAreNeverSet) {
  server.OnLoop([](Server& s) { s.AdmitLater(); });
  RawClient stranger = Connect();
  stranger.Send(EncodeValidate() + EncodeRequest(SetRequest{"/k", "planted"}));
  RawClient control_client = Connect();  // the stranger's bytes have arrived before its own
  control_client.Send(preamble);
  EXPECT_EQ(control_client.Receive(Taken("").size()), Taken(""));
  server.OnLoop([](Server& s) { s.AdmitOnly({*AddressRange::Parse("10.0.0.0/8")}); });
  EXPECT_TRUE(stranger.IsClosed());
  server.OnLoop([](Server& s) { EXPECT_EQ(s.key_count(), 0u); });
}

// Connections of strangers, with a limit of 4 of one network and a short time.
struct ServerStrangersTest : testing::Test {
  ~ServerStrangersTest() override { host.Leave(server); }

  ServerOptions Options() {
    ServerOptions options = host.Options();
    options.strangers = {.in_all = 8, .per_network = 4, .chance = std::chrono::milliseconds(1)};
    options.stranger_timeout = std::chrono::milliseconds(30);
    options.admission.allowed = {*AddressRange::Parse("10.0.0.0/8")};
    return options;
  }
  RawClient Connect() { return RawClient(Loopback(server.port()), /*validate=*/false); }

  Host host;
  ServerThread server{Options()};
};

TEST_F(ServerStrangersTest, SilenceEndsAtADeadline) {
  RawClient silent = Connect();
  RawClient half = Connect();
  half.Send(kControlPreamble.substr(0, 3));
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
}

TEST_F(ServerStrangersTest, SilentStrangersDoNotLockNodesOut) {
  std::vector<RawClient> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(Connect());
    server.OnLoop([](Server& s) { EXPECT_LE(s.connection_count(), 5u); });
  }
  bool is_taken = false;
  for (int tries = 0; tries < 1000 && !is_taken; ++tries) {
    RawClient node = Connect();
    node.Send(kControlPreamble);
    is_taken = node.Receive(6) == "taken:";
  }
  EXPECT_TRUE(is_taken);
}

TEST(ServerWithoutControlTest, ThePreambleIsRefusedAsAProtocolError) {
  LogLines log;
  ServerThread server;
  RawClient client(Loopback(server.port()), /*validate=*/false);
  client.Send(kControlPreamble);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("closed the connection from 127.0.0.1")));
}

TEST(ServerWithoutControlTest, AClientThatIsNoLongerAdmittedIsClosed) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  EXPECT_TRUE(client.IsServed());
  RawClient silent(Loopback(server.port()), /*validate=*/false);
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 2; }));
  server.OnLoop([](Server& s) { s.AdmitOnly({*AddressRange::Parse("10.0.0.0/8")}); });
  EXPECT_FALSE(client.IsServed());
  EXPECT_TRUE(silent.IsClosed());
}

}  // namespace
}  // namespace rankrun::store
