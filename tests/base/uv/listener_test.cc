#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/base/uv/loopback.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;
using test::ConnectTo;
using test::Loopback;

struct ListenerTest : testing::Test {
  Listener::OnAccept Keep() {
    return [this](std::unique_ptr<Stream> stream) { accepted.push_back(std::move(stream)); };
  }
  bool RunUntilAccepted(size_t count) {
    return loop.RunUntil([&] { return accepted.size() >= count; }, test::kLong);
  }

  Loop loop;
  std::vector<std::unique_ptr<Stream>> accepted;
};

std::set<int> OpenDescriptors() {
  std::set<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int number = std::stoi(entry.path().filename());
    if (fcntl(number, F_GETFD) >= 0) numbers.insert(number);
  }
  std::erase_if(numbers, [](int number) {
    return !test::IsOpen(number);
  });  // drops the descriptor of the folder itself
  return numbers;
}

TEST_F(ListenerTest, PortZeroIsTheKernelsChoice) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  EXPECT_NE(listener->address().port(), 0);
  EXPECT_EQ(listener->address().Host(), "127.0.0.1");
}

TEST_F(ListenerTest, HandsOverAConnectionWithItsPeersAddress) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  Fd client = ConnectTo(listener->address());
  ASSERT_TRUE(client);
  EXPECT_TRUE(accepted.empty());
  ASSERT_TRUE(RunUntilAccepted(1));
  EXPECT_EQ(accepted[0]->peer().ToString(), SocketAddress::LocalOf(client.get())->ToString());
}

TEST_F(ListenerTest, TakesManyConnectionsAtOnce) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  std::vector<Fd> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(ConnectTo(listener->address()));
    ASSERT_TRUE(clients.back()) << i;
  }
  EXPECT_TRUE(RunUntilAccepted(500));
}

TEST_F(ListenerTest, SetsTheOptionsOfConnections) {
  std::set<int> before = OpenDescriptors();
  auto listener = test::Listen(loop, Loopback(), Keep());
  Fd client = ConnectTo(listener->address());
  ASSERT_TRUE(RunUntilAccepted(1));
  std::string client_name = SocketAddress::LocalOf(client.get())->ToString();
  int checked = 0;
  for (int fd : OpenDescriptors()) {
    if (!before.contains(fd)) {
      EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC) << fd;
    }
    auto peer = SocketAddress::PeerOf(fd);
    if (!peer || peer->ToString() != client_name) continue;
    int no_delay = 0, keep_alive = 0;
    socklen_t size = sizeof(int);
    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &size);
    EXPECT_EQ(no_delay, 1);
    EXPECT_EQ(keep_alive, 1);
    checked += 1;
  }
  EXPECT_EQ(checked, 1);
}

TEST_F(ListenerTest, APortInUseIsAnErrorThatNamesIt) {
  auto first = test::Listen(loop, Loopback(), Keep());
  auto second = Listener::Open(loop, first->address(), Keep());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kSystem);
  EXPECT_EQ(second.error().message,
            "listen on " + first->address().ToString() + ": Address already in use");
}

// The kernel may refuse both of two sockets that begin to listen at the same
// time.
TEST_F(ListenerTest, OneOfTwoThatListenAtOnceGetsThePort) {
  // Use an address at which clients of other tests have no ports.
  auto address = *SocketAddress::FromNumeric("127.9.8.7", 0);
  address = address.WithPort(test::Listen(loop, address, Keep())->address().port());
  test::RunReadyCallbacks(loop);
  constexpr int kRounds = 1'000;
  std::barrier together(2);
  std::atomic<int> ready = 0, winners = 0;
  auto take = [&] {
    Loop own;
    for (int round = 0; round < kRounds; ++round) {
      ready += 1;
      while (ready < 2 * (round + 1)) sched_yield();  // a sleeper would wake up late
      auto listener = Listener::Open(own, address, [](std::unique_ptr<Stream>) {});
      winners += listener ? 1 : 0;
      together.arrive_and_wait();
      if (listener) listener->reset();
      own.RunUntil([] { return false; }, milliseconds(0));
    }
  };
  std::thread other(take);
  take();
  other.join();
  EXPECT_EQ(winners, kRounds);
}

TEST_F(ListenerTest, AnAddressOfAnotherMachineIsAnError) {
  auto listener = Listener::Open(loop, *SocketAddress::FromNumeric("192.0.2.1", 0), Keep());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().message, "listen on 192.0.2.1:0: Cannot assign requested address");
}

TEST_F(ListenerTest, ADroppedOneRefusesConnectionsAndFreesItsPort) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  SocketAddress address = listener->address();
  listener.reset();
  test::RunReadyCallbacks(loop);
  EXPECT_FALSE(ConnectTo(address));
  EXPECT_TRUE(Listener::Open(loop, address, Keep()));
}

TEST_F(ListenerTest, Ipv6WorksAndLeavesThePortOfIpv4) {
  if (!test::HasIpv6()) GTEST_SKIP() << "no IPv6 on this machine";
  auto six = test::Listen(loop, *SocketAddress::FromNumeric("::1", 0), Keep());
  Fd client = ConnectTo(six->address());
  ASSERT_TRUE(client);
  ASSERT_TRUE(RunUntilAccepted(1));
  EXPECT_EQ(accepted[0]->peer().Host(), "::1");
  auto any_six = test::Listen(loop, *SocketAddress::FromNumeric("::", 0), Keep());
  auto any_four = Listener::Open(
      loop, *SocketAddress::FromNumeric("0.0.0.0", any_six->address().port()), Keep());
  EXPECT_TRUE(any_four) << any_four.error().message;
}

TEST_F(ListenerTest, WithoutDescriptorsItClosesTheConnectionAndGoesOn) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  Fd unlucky = ConnectTo(listener->address());
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few{256, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Fd> hogs;
  for (int fd; (fd = fcntl(unlucky.get(), F_DUPFD_CLOEXEC, 0)) >= 0;) hogs.emplace_back(fd);
  bool refused = loop.RunUntil(
      [&] {
        char byte;
        return recv(unlucky.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
      },
      test::kLong);
  hogs.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(refused);
  EXPECT_TRUE(accepted.empty());
  Fd lucky = ConnectTo(listener->address());
  EXPECT_TRUE(RunUntilAccepted(1));
}

TEST_F(ListenerTest, AClientThatIsGoneAlreadyDoesNoHarm) {
  auto listener = test::Listen(loop, Loopback(), Keep());
  for (int i = 0; i < 20; ++i) {
    Fd client = ConnectTo(listener->address());
    linger at_once{1, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  Fd stays = ConnectTo(listener->address());
  std::string name = SocketAddress::LocalOf(stays.get())->ToString();
  auto came = [&] { return !accepted.empty() && accepted.back()->peer().ToString() == name; };
  EXPECT_TRUE(loop.RunUntil(came, test::kLong));
}

}  // namespace
}  // namespace rankrun
