#include "base/net/socket_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "base/fd.h"

namespace rankrun {
namespace {

SocketAddress Numeric(const std::string& text, uint16_t port = 0) {
  auto address = SocketAddress::FromNumeric(text, port);
  EXPECT_TRUE(address) << text;
  return address ? *address : SocketAddress();
}

TEST(SocketAddressTest, ReadsIpv4) {
  SocketAddress address = Numeric("10.1.2.3", 29500);
  EXPECT_EQ(address.family(), AF_INET);
  EXPECT_EQ(address.port(), 29500);
  EXPECT_EQ(address.Host(), "10.1.2.3");
  EXPECT_EQ(address.ToString(), "10.1.2.3:29500");
  EXPECT_EQ(address.raw_size(), sizeof(sockaddr_in));
}

TEST(SocketAddressTest, ReadsIpv6) {
  SocketAddress address = Numeric("2001:db8::1", 65535);
  EXPECT_EQ(address.family(), AF_INET6);
  EXPECT_EQ(address.port(), 65535);
  EXPECT_EQ(address.Host(), "2001:db8::1");
  EXPECT_EQ(address.ToString(), "[2001:db8::1]:65535");
  EXPECT_EQ(address.raw_size(), sizeof(sockaddr_in6));
}

TEST(SocketAddressTest, KeepsTheScopeOfALinkLocalAddress) {
  EXPECT_EQ(Numeric("fe80::1%lo", 1).ToString(), "[fe80::1%lo]:1");
}

TEST(SocketAddressTest, RefusesTextThatIsNotNumeric) {
  for (const char* text : {"", "localhost", "1.2.3.4.5", "256.1.1.1", "::g", "1.2.3.4:5"}) {
    auto address = SocketAddress::FromNumeric(text, 1);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(address.error().message,
              "\"" + std::string(text) + "\" is not an IPv4 or IPv6 address");
  }
}

TEST(SocketAddressTest, APortCanBeReplaced) {
  for (const char* text : {"127.0.0.1", "::1"}) {
    SocketAddress first = Numeric(text, 1);
    SocketAddress second = first.WithPort(40000);
    EXPECT_EQ(first.port(), 1);
    EXPECT_EQ(second.port(), 40000);
    EXPECT_EQ(second.Host(), text);
  }
}

TEST(SocketAddressTest, KnowsLoopbackInEveryForm) {
  for (const char* text : {"127.0.0.1", "127.255.1.2", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(Numeric(text).is_loopback()) << text;
  }
  for (const char* text : {"128.0.0.1", "0.0.0.0", "::", "::2", "::ffff:10.0.0.1", "fe80::1"}) {
    EXPECT_FALSE(Numeric(text).is_loopback()) << text;
  }
  EXPECT_FALSE(SocketAddress().is_loopback());
}

TEST(SocketAddressTest, ResolvesLocalhostToLoopback) {
  auto found = SocketAddress::Resolve("localhost", 29500);
  if (!found) GTEST_SKIP() << found.error().message;  // a system without /etc/hosts
  ASSERT_FALSE(found->empty());
  for (const SocketAddress& address : *found) {
    EXPECT_TRUE(address.is_loopback()) << address.ToString();
    EXPECT_EQ(address.port(), 29500);
  }
}

TEST(SocketAddressTest, ResolvesANumericAddressToItself) {
  auto found = SocketAddress::Resolve("10.1.2.3", 7);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].ToString(), "10.1.2.3:7");
}

TEST(SocketAddressTest, SaysWhichNameItCannotResolve) {
  auto found = SocketAddress::Resolve("no such host", 1);
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message.starts_with("look up no such host: ")) << found.error().message;
}

TEST(SocketAddressTest, KnowsBothEndsOfASocket) {
  Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress any = Numeric("127.0.0.1");
  ASSERT_EQ(bind(listening.get(), any.raw(), any.raw_size()), 0);
  ASSERT_EQ(listen(listening.get(), 1), 0);
  auto bound = SocketAddress::LocalOf(listening.get());
  ASSERT_TRUE(bound);
  EXPECT_NE(bound->port(), 0);
  Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), bound->raw(), bound->raw_size()), 0);
  auto peer = SocketAddress::PeerOf(client.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->ToString(), bound->ToString());
}

TEST(SocketAddressTest, ASocketWithoutAPeerHasNoPeersAddress) {
  Fd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto peer = SocketAddress::PeerOf(socket_fd.get());
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().code, ErrorCode::kSystem);
}

}  // namespace
}  // namespace rankrun
