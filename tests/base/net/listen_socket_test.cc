#include "base/net/listen_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

Fd Socket(int family = AF_INET, int type = SOCK_STREAM) {
  return Fd(socket(family, type | SOCK_CLOEXEC, 0));
}

Fd Bound(Fd fd = Socket()) {
  SocketAddress any = *SocketAddress::FromNumeric("127.0.0.1", 0);
  EXPECT_EQ(bind(fd.get(), any.raw(), any.raw_size()), 0);
  return fd;
}

TEST(ListenSocketTest, HasTheAddressToWhichItIsBound) {
  Fd fd = Bound();
  auto bound = ListenSocketAddress(fd.get());
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ(bound->ToString(), SocketAddress::LocalOf(fd.get())->ToString());
  ASSERT_EQ(listen(fd.get(), 1), 0);
  EXPECT_EQ(ListenSocketAddress(fd.get())->port(), bound->port());
}

TEST(ListenSocketTest, AnyOtherDescriptorIsAnErrorThatSaysWhatItIs) {
  Fd listener = Bound();
  ASSERT_EQ(listen(listener.get(), 1), 0);
  SocketAddress address = *SocketAddress::LocalOf(listener.get());
  Fd connected = Socket();
  ASSERT_EQ(connect(connected.get(), address.raw(), address.raw_size()), 0);
  test::Pipe pipe = test::MakePipe();
  Fd unbound = Socket();
  Fd datagram = Bound(Socket(AF_INET, SOCK_DGRAM));
  Fd local = Socket(AF_UNIX);
  std::vector<std::pair<int, std::string>> wrong = {
      {-7, "is not open"},
      {pipe.read_end.get(), "is not a socket"},
      {datagram.get(), "is another kind of socket"},
      {local.get(), "is another kind of socket"},
      {unbound.get(), "is not bound"},
      {connected.get(), "is connected to " + address.ToString()},
  };
  for (const auto& [fd, problem] : wrong) {
    auto refused = ListenSocketAddress(fd);
    ASSERT_FALSE(refused) << problem;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(refused.error().message, "descriptor " + std::to_string(fd) + " " + problem +
                                           ": want a TCP socket that is bound to a port");
  }
}

TEST(ListenSocketTest, AFreePortListensAtOnceAndIsNotInherited) {
  auto opened = OpenTcpSocket();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(IsOurs(opened->get()));
  auto port = ListenOnFreePort(opened->get());
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ(*ListenOnFreePort(opened->get()), *port) << "it listens already";
  SocketAddress address = *SocketAddress::FromNumeric("127.0.0.1", *port);
  Fd client = Socket();
  EXPECT_EQ(connect(client.get(), address.raw(), address.raw_size()), 0);
}

}  // namespace
}  // namespace rankrun
