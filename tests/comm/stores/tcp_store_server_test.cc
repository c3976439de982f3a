// Servers of TcpStores: on a socket of the program, and shared by several objects.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

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

TcpStoreOptions Shared(uint16_t port) {
  return {.port = port, .is_server = true, .timeout = kLong, .multi_tenant = true};
}

TEST(PublicTcpStoreServerTest, ObjectsOfOneProcessShareAServerUntilTheLastEnds) {
  auto first = std::make_unique<TcpStore>(Shared(0));
  uint16_t port = first->port();
  auto second = std::make_unique<TcpStore>(Shared(port));
  first->Set("k", "v");
  EXPECT_EQ(second->Get("k"), "v");
  EXPECT_EQ(second->port(), port);
  EXPECT_TRUE(second->is_server());
  first.reset();
  EXPECT_EQ(second->Get("k"), "v");
  EXPECT_EQ(TcpStore({.port = port, .timeout = kLong}).Get("k"), "v");
  second.reset();
  TcpStore fresh({.port = port, .is_server = true, .timeout = kLong});
  EXPECT_FALSE(fresh.Check({"k"}));
}

TEST(PublicTcpStoreServerTest, AServerIsSharedOnlyAmongObjectsThatWantIt) {
  TcpStore shared(Shared(0));
  TcpStoreOptions plain = Shared(shared.port());
  plain.multi_tenant = false;
  EXPECT_EQ(ThrownBy([&] { TcpStore other(plain); }).kind, "store");
  TcpStore alone({.port = 0, .is_server = true, .timeout = kLong});
  EXPECT_EQ(ThrownBy([&] { TcpStore other(Shared(alone.port())); }).kind, "store");
  TcpStoreOptions open = Shared(shared.port());
  open.host = "0.0.0.0";
  Thrown thrown = ThrownBy([&] { TcpStore other(open); });
  EXPECT_EQ(thrown.kind, "use");
  std::string port = std::to_string(shared.port());
  EXPECT_EQ(thrown.text, "this process serves a store at port " + port +
                             " of loopback only: want another port than for 0.0.0.0:" + port);
}

TEST(PublicTcpStoreServerTest, AForkedChildSharesNoServerOfItsParent) {
  TcpStore parent(Shared(0));
  pid_t child = test::Fork([&] {
    return ThrownBy([&] { TcpStore other(Shared(parent.port())); }).kind == "store" ? 0 : 1;
  });
  EXPECT_EQ(test::WaitForExit(child), (ProcessExit{false, 0}));
  parent.Set("k", "v");
  EXPECT_EQ(TcpStore(Shared(parent.port())).Get("k"), "v");
}

TEST(PublicTcpStoreServerTest, AServerOnASocketIsSharedByItsPort) {
  TcpStoreOptions options = Shared(0);
  options.listen_fd = Reserved("127.0.0.2", true);
  TcpStore first(options);
  first.Set("k", "v");
  EXPECT_EQ(TcpStore(Shared(first.port())).Get("k"), "v");
  SocketAddress beside = *SocketAddress::FromNumeric("127.0.0.3", first.port());
  Fd fd(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(bind(fd.get(), beside.raw(), beside.raw_size()), 0);
  options.listen_fd = fd.get();
  Thrown thrown = ThrownBy([&] { TcpStore second(options); });
  EXPECT_EQ(thrown.kind, "use");
  EXPECT_EQ(thrown.text, "this process serves a store at port " + std::to_string(first.port()) +
                             ": want a socket with another port");
  EXPECT_TRUE(test::IsOpen(fd.get()));
}

// The last object ends the server while others open it.
TEST(PublicTcpStoreServerTest, ThreadsMayShareAndEndAServerAtTheSameTime) {
  uint16_t port = 0;
  {
    TcpStore drawn(Shared(0));
    port = drawn.port();
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        TcpStore store(Shared(port));
        EXPECT_GT(store.Add("n", 1), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rankrun
