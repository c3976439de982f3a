#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/net/control_preamble.h"
#include "base/uv/uv_stream.h"
#include "base/write_all.h"
#include "tests/base/net/peer_user_probe.h"
#include "tests/base/net/two_hosts.h"
#include "tests/base/uv/loopback.h"
#include "tests/store/server/log_lines.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

// Users of the server's host.

namespace rankrun::store {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

ServerOptions OnlyRoot() {
  ServerOptions options;
  options.admits_user = [](uid_t user) { return user == 0; };
  return options;
}

struct ServerUsersTest : testing::Test {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  }

  static RawClient ConnectAsNobody(uint16_t port, bool validate = true) {
    EXPECT_EQ(seteuid(kNobody), 0);
    RawClient client(Loopback(port), validate);
    EXPECT_EQ(seteuid(0), 0);
    return client;
  }
};

TEST_F(ServerUsersTest, AnotherUserIsRefused) {
  LogLines log;
  ServerThread server(OnlyRoot());
  RawClient own(Loopback(server.port()));
  EXPECT_TRUE(own.IsServed());
  RawClient other = ConnectAsNobody(server.port());
  EXPECT_TRUE(other.IsClosed());
  EXPECT_TRUE(own.IsServed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("it belongs to user 65534 of this host")));
}

// The server sees this connection when its socket is closed.
TEST_F(ServerUsersTest, WhatAClosedSocketOfAnotherUserSentIsIgnored) {
  ServerThread server(OnlyRoot());
  server.OnLoop([&](Server&) {
    RawClient other = ConnectAsNobody(server.port());
    other.Ask(SetRequest{"planted", "value"});
  });
  RawClient own(Loopback(server.port()));
  EXPECT_TRUE(own.IsServed());
  server.OnLoop([](Server& s) { EXPECT_EQ(s.Stats().keys, 0u); });
}

// A control connection proves the job's secret instead.
TEST_F(ServerUsersTest, AControlConnectionMayBeOfAnotherUser) {
  ServerOptions options = OnlyRoot();
  std::vector<std::unique_ptr<Stream>> taken;
  options.control = [&](std::unique_ptr<Stream> stream, std::string_view) {
    taken.push_back(std::move(stream));
  };
  ServerThread server(std::move(options));
  RawClient control = ConnectAsNobody(server.port(), /*validate=*/false);
  control.Send(kControlPreamble);
  EXPECT_TRUE(server.Eventually([&](Server&) { return taken.size() == 1; }));
  RawClient client = ConnectAsNobody(server.port());
  EXPECT_TRUE(client.IsClosed());
  server.OnLoop([&](Server&) { taken.clear(); });
}

TEST_F(ServerUsersTest, AnotherUserPlantsNothingBeforeAdmission) {
  ServerThread server(OnlyRoot());
  server.OnLoop([](Server& s) { s.AdmitLater(); });
  RawClient other = ConnectAsNobody(server.port());
  other.Ask(SetRequest{"planted", "value"});
  EXPECT_TRUE(other.IsClosed());
  server.OnLoop([](Server& s) {
    s.AdmitOnly({});
    EXPECT_EQ(s.Stats().keys, 0u);
  });
}

// Its address is admitted, but it may not wait for ever.
TEST_F(ServerUsersTest, ASilentConnectionOfAnotherUserHasADeadline) {
  ServerOptions options = OnlyRoot();
  options.control = [](std::unique_ptr<Stream>, std::string_view) {};
  options.stranger_timeout = std::chrono::milliseconds(300);
  ServerThread server(std::move(options));
  RawClient before = ConnectAsNobody(server.port(), /*validate=*/false);
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 1; }));
  server.OnLoop([](Server& s) { s.AdmitOnly({}); });
  RawClient after = ConnectAsNobody(server.port(), /*validate=*/false);
  EXPECT_TRUE(before.IsClosed());
  EXPECT_TRUE(after.IsClosed());
}

// A server on one host and a client on another one.
struct RemoteClientTest : ServerUsersTest {
  void SetUp() override {
    ServerUsersTest::SetUp();
    if (IsSkipped()) return;
    hosts = test::TwoHosts::Make();
    if (hosts == nullptr) GTEST_SKIP() << "network namespaces are not permitted here";
  }
  void Start(ServerOptions options = OnlyRoot()) {
    options.addresses = {{*SocketAddress::FromNumeric("0.0.0.0", 0)}};
    options.admission.allowed = {*AddressRange::Parse("10.77.0.0/24")};
    options.ask_whose = [this](const auto& client) { asked.push_back(client); };
    ASSERT_TRUE(hosts->Enter(0));
    server = std::make_unique<ServerThread>(std::move(options));
    ASSERT_TRUE(hosts->Leave());
  }
  RawClient ConnectFrom(size_t host, bool validate = true) const {
    EXPECT_TRUE(hosts->Enter(host));
    RawClient client(*SocketAddress::FromNumeric("10.77.0.1", server->port()), validate);
    EXPECT_TRUE(hosts->Leave());
    return client;
  }
  bool IsAsked(size_t count) {
    return server->Eventually([&](Server&) { return asked.size() == count; });
  }

  std::unique_ptr<test::TwoHosts> hosts;
  std::vector<ServerOptions::RemoteClient> asked;  // on the loop's thread
  std::unique_ptr<ServerThread> server;
};

TEST_F(RemoteClientTest, TheRequestsOfAClientWaitForItsNode) {
  Start();
  RawClient client = ConnectFrom(1);
  client.Ask(SetRequest{"key", "value"});
  ASSERT_TRUE(IsAsked(1));
  server->OnLoop([&](Server& s) {
    EXPECT_EQ(asked[0].peer.Host(), "10.77.0.2");
    EXPECT_EQ(asked[0].local.ToString(), "10.77.0.1:" + std::to_string(s.port()));
    EXPECT_EQ(s.Stats().keys, 0u);
    s.OnVouched(asked[0].id, "");
  });
  EXPECT_TRUE(client.IsServed());
  server->OnLoop([](Server& s) { EXPECT_EQ(s.Stats().keys, 1u); });
  EXPECT_TRUE(IsAsked(1)) << "it is asked for once";
}

TEST_F(RemoteClientTest, AClientForWhichNobodyVouchesIsRefused) {
  LogLines log;
  Start();
  RawClient client = ConnectFrom(1);
  client.Ask(SetRequest{"planted", "value"});
  ASSERT_TRUE(IsAsked(1));
  server->OnLoop([&](Server& s) {
    s.OnVouched(asked[0].id, "node a: it belongs to user 7");
    s.OnVouched(asked[0].id, "");  // too late
    s.OnVouched(4711, "");         // no client has this number
    EXPECT_EQ(s.Stats().keys, 0u);
  });
  EXPECT_TRUE(client.IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("node a: it belongs to user 7")));
}

// Then another connection may have had its addresses and ports when its node looked.
TEST_F(RemoteClientTest, AClientThatIsGoneSetsNothing) {
  LogLines log;
  Start();
  ASSERT_TRUE(hosts->Enter(1));
  Fd client = test::ConnectTo(*SocketAddress::FromNumeric("10.77.0.1", server->port()));
  ASSERT_TRUE(hosts->Leave());
  WriteAll(client.get(), EncodeValidate() + EncodeRequest(SetRequest{"planted", "value"}));
  ASSERT_TRUE(IsAsked(1));
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client.Reset();
  server->OnLoop([&](Server& s) { s.OnVouched(asked[0].id, ""); });
  EXPECT_TRUE(server->Eventually([](Server& s) { return s.connection_count() == 0; }));
  server->OnLoop([](Server& s) { EXPECT_EQ(s.Stats().keys, 0u); });
  EXPECT_THAT(log.Get(), Contains(HasSubstr("its connection is closed")));
}

TEST_F(RemoteClientTest, TheServersOwnHostIsNotAsked) {
  Start();
  RawClient client = ConnectFrom(0);
  EXPECT_TRUE(client.IsServed());
  EXPECT_TRUE(IsAsked(0));
}

TEST_F(RemoteClientTest, AClientThatCameBeforeAdmissionIsAskedForAfterIt) {
  Start();
  server->OnLoop([](Server& s) { s.AdmitLater(); });
  RawClient client = ConnectFrom(1);
  client.Ask(SetRequest{"key", "value"});
  EXPECT_TRUE(server->Eventually([](Server& s) { return s.connection_count() == 1; }));
  EXPECT_TRUE(IsAsked(0));
  server->OnLoop([](Server& s) { s.AdmitOnly({*AddressRange::Parse("10.77.0.2")}); });
  ASSERT_TRUE(IsAsked(1));
  server->OnLoop([&](Server& s) { s.OnVouched(asked[0].id, ""); });
  EXPECT_TRUE(client.IsServed());
}

// All addresses are allowed only if those of the nodes are unknown.
TEST_F(RemoteClientTest, AStoreThatIsOpenToAllAddressesAsksNobody) {
  Start();
  server->OnLoop([](Server& s) { s.AdmitOnly({}); });
  EXPECT_TRUE(ConnectFrom(1).IsServed());
  EXPECT_TRUE(IsAsked(0));
}

// Its place is free again soon.
TEST_F(RemoteClientTest, ASilentClientIsAskedForWhenItConnects) {
  Start();
  RawClient client = ConnectFrom(1, /*validate=*/false);
  ASSERT_TRUE(IsAsked(1));
  server->OnLoop([&](Server& s) { s.OnVouched(asked[0].id, "node a: it belongs to user 7"); });
  EXPECT_TRUE(client.IsClosed());
  RawClient early = ConnectFrom(1, /*validate=*/false);
  ASSERT_TRUE(IsAsked(2));
  server->OnLoop([&](Server& s) { s.OnVouched(asked[1].id, ""); });
  early.Send(EncodeValidate());
  EXPECT_TRUE(early.IsServed()) << "its first bytes may come later";
}

struct RemoteControlTest : RemoteClientTest {
  void StartWithControl(std::chrono::milliseconds stranger_timeout) {
    ServerOptions options = OnlyRoot();
    options.control = [this](std::unique_ptr<Stream> stream, std::string_view) {
      taken.push_back(std::move(stream));
    };
    options.stranger_timeout = stranger_timeout;
    Start(std::move(options));
  }
  void TearDown() override {
    if (server) server->OnLoop([&](Server&) { taken.clear(); });
  }
  std::vector<std::unique_ptr<Stream>> taken;
};

// It proves the secret of the job instead.
TEST_F(RemoteControlTest, AControlConnectionNeedsNobodyToVouchForIt) {
  StartWithControl(std::chrono::minutes(1));
  for (const char* why : {"node a: it belongs to user 7", ""}) {
    RawClient control = ConnectFrom(1, /*validate=*/false);
    ASSERT_TRUE(server->Eventually([&](Server&) { return !asked.empty(); }));
    if (*why != '\0') {
      server->OnLoop([&](Server& s) { s.OnVouched(asked[0].id, why); });
    }
    control.Send(kControlPreamble);
    EXPECT_TRUE(server->Eventually([&](Server&) { return taken.size() == 1; })) << why;
    server->OnLoop([&](Server& s) {
      s.OnVouched(asked[0].id, "too late");
      taken.clear();
      asked.clear();
    });
  }
}

TEST_F(RemoteControlTest, ASilentClientOfAnotherUserHasADeadline) {
  StartWithControl(std::chrono::milliseconds(300));
  RawClient silent = ConnectFrom(1, /*validate=*/false), client = ConnectFrom(1);
  ASSERT_TRUE(IsAsked(2));
  server->OnLoop([&](Server& s) {
    for (const auto& each : asked) s.OnVouched(each.id, "node a: it belongs to user 7");
  });
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(RemoteClientTest, TheRequestsThatWaitAreLimited) {
  ServerOptions options = OnlyRoot();
  options.admission.unvouched_per_address = 2;
  options.largest_traffic_bytes = 300;
  LogLines log;
  Start(std::move(options));
  RawClient first = ConnectFrom(1, false), second = ConnectFrom(1, false);
  EXPECT_TRUE(ConnectFrom(1).IsClosed());
  EXPECT_THAT(log.Get(), Contains(HasSubstr("2 connections already that no node has vouched for")));
  first.Ask(SetRequest{"key", std::string(200, 'x')});
  second.Ask(SetRequest{"key", std::string(200, 'x')});
  EXPECT_TRUE(server->Eventually([](Server& s) { return s.connection_count() == 1; }))
      << "their requests count as traffic";
}

}  // namespace
}  // namespace rankrun::store
