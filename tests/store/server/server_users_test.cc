#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/net/control_preamble.h"
#include "base/uv/uv_stream.h"
#include "tests/base/net/peer_user_probe.h"
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

}  // namespace
}  // namespace rankrun::store
