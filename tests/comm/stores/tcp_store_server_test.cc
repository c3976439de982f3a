// Servers of TcpStores: on a socket of the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <rankrun/store.h>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "tests/base/support.h"
#include "tests/comm/stores/thrown.h"

namespace rankrun {
namespace {

using namespace std::chrono_literals;
using test::kLong;

// Returns a socket that is bound to a free port, as another part of the program
// would reserve it.
int Reserved(const std::string& host, bool listens) {
  SocketAddress address = *SocketAddress::FromNumeric(host, 0);
  int fd = socket(address.family(), SOCK_STREAM, 0);
  EXPECT_EQ(bind(fd, address.raw(), address.raw_size()), 0);
  if (listens) {
    EXPECT_EQ(listen(fd, 1), 0);
  }
  return fd;
}

TEST(PublicTcpStoreServerTest, ItTakesOverASocketThatIsBound) {
  for (bool listens : {false, true}) {
    for (const char* host : {"127.0.0.1", "127.0.0.2", "0.0.0.0"}) {
      int fd = Reserved(host, listens);
      uint16_t port = SocketAddress::LocalOf(fd)->port();
      {
        TcpStore server({.is_server = true, .timeout = kLong, .listen_fd = fd});
        EXPECT_EQ(server.port(), port);
        EXPECT_TRUE(IsOurs(fd)) << "close-on-exec";
        server.Clone()->Set("k", "v");
        EXPECT_EQ(server.Get("k"), "v");
      }
      EXPECT_FALSE(test::IsOpen(fd));
    }
  }
}

TEST(PublicTcpStoreServerTest, ASocketThatCannotServeIsADistErrorAndStays) {
  test::Pipe pipe = test::MakePipe();
  Thrown thrown =
      ThrownBy([&] { TcpStore server({.is_server = true, .listen_fd = pipe.read_end.get()}); });
  EXPECT_EQ(thrown.kind, "use");
  EXPECT_EQ(thrown.text, "TcpStore: listen_fd: descriptor " + std::to_string(pipe.read_end.get()) +
                             " is not a socket: want a TCP socket that is bound to a port");
  EXPECT_TRUE(test::IsOpen(pipe.read_end.get()));
  Fd fd(Reserved("127.0.0.1", false));
  thrown = ThrownBy([&] { TcpStore client({.listen_fd = fd.get()}); });
  EXPECT_EQ(thrown.kind, "use");
  EXPECT_EQ(thrown.text, "TcpStore: listen_fd is " + std::to_string(fd.get()) +
                             ", but this is not the server: want is_server");
  EXPECT_TRUE(test::IsOpen(fd.get()));
}

TEST(PublicTcpStoreServerTest, ASocketThatIsTakenOverIsClosedOnErrors) {
  int fd = Reserved("127.0.0.1", false);
  Thrown thrown = ThrownBy([&] {
    TcpStore server({.is_server = true, .world_size = 2, .timeout = 300ms, .listen_fd = fd});
  });
  EXPECT_EQ(thrown.kind, "store");
  EXPECT_FALSE(test::IsOpen(fd));
}

}  // namespace
}  // namespace rankrun
