#include "base/net/peer_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/base/net/peer_user_probe.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

using testing::StartsWith;

constexpr uid_t kNobody = 65534;

// A listener on a loopback address, the other end of one connection to it, and the
// end that the listener accepted.
struct Connection {
  explicit Connection(const std::string& address) {
    SocketAddress wanted = *SocketAddress::FromNumeric(address, 0);
    listener.Reset(socket(wanted.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), wanted.raw(), wanted.raw_size()), 0);
    EXPECT_EQ(listen(listener.get(), 8), 0);
  }
  void Connect(const std::string& from = "") {
    SocketAddress server = *SocketAddress::LocalOf(listener.get());
    client.Reset(socket(server.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!from.empty()) {
      SocketAddress source = *SocketAddress::FromNumeric(from, 0);
      EXPECT_EQ(bind(client.get(), source.raw(), source.raw_size()), 0);
    }
    EXPECT_EQ(connect(client.get(), server.raw(), server.raw_size()), 0);
    accepted.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted);
    local = *SocketAddress::LocalOf(accepted.get());
    peer = *SocketAddress::PeerOf(accepted.get());
  }
  PeerUser Find() { return users.Find(local, peer); }
  std::string ReasonElsewhere(const SocketAddress& server, const SocketAddress& from) {
    auto is_admitted = [](uid_t user) { return user == geteuid(); };
    auto [why, is_of_user] = users.ReasonsToRefuse({{server, from}}, is_admitted)[0];
    EXPECT_EQ(is_of_user, why.starts_with("it belongs to user "));
    return why;
  }
  std::string ReasonElsewhere() { return ReasonElsewhere(local, peer); }

  Fd listener, client, accepted;
  SocketAddress local, peer;
  PeerUsers users;
};

struct PeerUserTest : testing::TestWithParam<std::string> {
  PeerUserTest() : connection(GetParam()) {}

  void SetUp() override {
    if (!test::KernelTellsUsers()) GTEST_SKIP() << "the kernel does not tell";
  }

  Connection connection;
};

TEST_P(PeerUserTest, TheUserOfAProgramOnThisHostIsKnown) {
  connection.Connect();
  PeerUser user = connection.Find();
  EXPECT_EQ(user.kind, PeerUser::Kind::kKnown);
  EXPECT_EQ(user.uid, geteuid());
}

TEST_P(PeerUserTest, AnotherUserIsTold) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(seteuid(kNobody), 0);
  connection.Connect();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(connection.Find().uid, kNobody);
}

TEST_P(PeerUserTest, AClosedSocketHasNoUser) {
  connection.Connect();
  connection.client.Reset();
  EXPECT_EQ(connection.Find().kind, PeerUser::Kind::kGone);
}

TEST_P(PeerUserTest, AResetSocketHasNoUser) {
  connection.Connect();
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(connection.client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  connection.client.Reset();
  EXPECT_EQ(connection.Find().kind, PeerUser::Kind::kGone);
}

// The other end of a connection may be on another host: only the client's is looked up.
TEST_P(PeerUserTest, AServerElsewhereLearnsOfAnAdmittedClient) {
  connection.Connect();
  EXPECT_EQ(connection.ReasonElsewhere(), "");
}

TEST_P(PeerUserTest, AServerElsewhereRefusesAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(seteuid(kNobody), 0);
  connection.Connect();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(connection.ReasonElsewhere(), "it belongs to user 65534");
}

TEST_P(PeerUserTest, AServerElsewhereRefusesAClosedSocket) {
  connection.Connect();
  connection.client.Reset();
  EXPECT_EQ(connection.ReasonElsewhere(), "its socket is closed");
  SocketAddress nowhere = connection.peer.WithPort(1);
  EXPECT_THAT(connection.ReasonElsewhere(connection.local, nowhere),
              StartsWith("no program there has this connection: it has ended, or "));
}

// A gateway between the two hosts has changed the address of the client.
TEST_P(PeerUserTest, BehindAddressTranslationThePortsCount) {
  connection.Connect();
  SocketAddress translated = *SocketAddress::FromNumeric("203.0.113.7", connection.peer.port());
  EXPECT_EQ(connection.ReasonElsewhere(connection.local, translated), "");
  EXPECT_NE(connection.ReasonElsewhere(connection.local, translated.WithPort(1)), "");
  if (geteuid() != 0) return;
  ASSERT_EQ(seteuid(kNobody), 0);
  connection.Connect();
  ASSERT_EQ(seteuid(0), 0);
  translated = translated.WithPort(connection.peer.port());
  EXPECT_EQ(connection.ReasonElsewhere(connection.local, translated), "it belongs to user 65534");
}

// Another user has had both ports, too, in a connection to another address of the server.
TEST_P(PeerUserTest, TheAddressOfAServerMayBeTranslated) {
  connection.Connect();
  SocketAddress other = *SocketAddress::FromNumeric("203.0.113.9", connection.local.port());
  EXPECT_EQ(connection.ReasonElsewhere(other, connection.peer), "");
}

INSTANTIATE_TEST_SUITE_P(Families, PeerUserTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& family) {
                           return family.param == "::1" ? "IPv6" : "IPv4";
                         });

TEST(PeerUserOfOthersTest, AnUnknownConnectionHasNoKnownUser) {
  PeerUsers users;
  PeerUser user = users.Find(*SocketAddress::FromNumeric("127.0.0.1", 1),
                             *SocketAddress::FromNumeric("203.0.113.7", 2));
  EXPECT_EQ(user.kind, PeerUser::Kind::kUnknown);
}

// An IPv6 socket may have an IPv4 connection.
TEST(PeerUserOfOthersTest, AMappedAddressIsAnIpv4Address) {
  Connection connection("127.0.0.1");
  connection.Connect();
  SocketAddress mapped = *SocketAddress::FromNumeric("::ffff:127.0.0.1", connection.peer.port());
  EXPECT_EQ(connection.users.Find(connection.local, mapped).kind, connection.Find().kind);
}

}  // namespace
}  // namespace rankrun
