#include "agent/nodes/liveness_port.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/net/listen_socket.h"
#include "tests/agent/control/control_fixture.h"

namespace rankrun::agent {
namespace {

struct LivenessPortTest : ControlTest {
  // Returns an incarnation with a duplicate of the guardian's socket, as fork makes it.
  std::unique_ptr<Incarnation> Live() {
    auto pair = GuardianLink::CreatePair();
    auto memory = JobMemory::Create();
    EXPECT_TRUE(pair && memory);
    Fd socket(guardians ? fcntl(guardians.get(), F_DUPFD_CLOEXEC, 3) : Fd::kNone);
    return std::make_unique<Incarnation>(std::move(pair->second), std::move(*memory),
                                         std::move(socket));
  }
  // Returns 0 or an errno.
  static int Connect(const std::string& host, uint16_t port) {
    SocketAddress address = *SocketAddress::FromNumeric(host, port);
    Fd client(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(client.get(), address.raw(), address.raw_size()) == 0 ? 0 : errno;
  }

  Fd guardians = *OpenTcpSocket();
};

TEST_F(LivenessPortTest, ItAnswersUntilGuardianAndAgentAreGone) {
  auto life = Live();
  auto port = LivenessPort::Open(loop, *life);
  ASSERT_TRUE(port) << port.error().message;
  const uint16_t number = (*port)->number();
  EXPECT_EQ(Connect("127.0.0.1", number), 0);
  port->reset();  // the agent dies
  Eventually([] { return true; });
  EXPECT_EQ(Connect("127.0.0.1", number), 0);
  auto next_life = Live();
  auto next = LivenessPort::Open(loop, *next_life);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ((*next)->number(), number);
  EXPECT_EQ(Connect("127.0.0.1", number), 0);
  next->reset();
  guardians.Reset();
  EXPECT_TRUE(Eventually([&] { return Connect("127.0.0.1", number) == ECONNREFUSED; }));
}

TEST_F(LivenessPortTest, ItAnswersIpv6IfTheHostHasIt) {
  Fd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress address = *SocketAddress::FromNumeric("::1", 0);
  if (bind(probe.get(), address.raw(), address.raw_size()) != 0) GTEST_SKIP() << "no IPv6 here";
  auto life = Live();
  auto port = LivenessPort::Open(loop, *life);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(Connect("::1", (*port)->number()), 0);
}

TEST_F(LivenessPortTest, ItClosesConnectionsAtOnce) {
  auto life = Live();
  auto port = LivenessPort::Open(loop, *life);
  ASSERT_TRUE(port);
  Fd client = test::ConnectTo(test::Loopback((*port)->number()));
  char byte;
  EXPECT_TRUE(Eventually([&] { return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0; }));
}

TEST_F(LivenessPortTest, AnAgentHasNoneThatItsGuardianDoesNotKeep) {
  guardians.Reset();  // it had no descriptor left
  auto life = Live();
  EXPECT_FALSE(LivenessPort::Open(loop, *life));
}

}  // namespace
}  // namespace rankrun::agent
