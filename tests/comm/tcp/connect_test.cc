#include "comm/tcp/connect.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <map>

#include "base/status/status_page.h"
#include "comm/tcp/handshake.h"
#include "tests/base/support.h"
#include "tests/comm/tcp/group.h"

namespace rankrun::comm::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Returns the error of each rank, or "ok".
std::vector<std::string> TextsOf(const std::vector<ConnectResult>& results) {
  std::vector<std::string> texts;
  for (const auto& result : results) texts.push_back(result ? "ok" : result.error().message);
  return texts;
}

// Streams of a rank to a peer: control, data.
std::vector<const Fd*> StreamsOf(const PeerSockets& sockets) {
  std::vector<const Fd*> streams{&sockets.control};
  for (const Fd& data : sockets.data) streams.push_back(&data);
  return streams;
}

// Expects each stream of each rank to lead to the same stream of its peer.
void ExpectConnected(const std::vector<ConnectResult>& results, size_t data_streams) {
  ASSERT_THAT(TextsOf(results), Each("ok"));
  for (size_t from = 0; from < results.size(); ++from) {
    ASSERT_EQ(results[from]->size(), results.size());
    EXPECT_TRUE((*results[from])[from].data.empty());
    EXPECT_FALSE((*results[from])[from].control);
    for (size_t to = 0; to < results.size(); ++to) {
      if (to == from) continue;
      auto sending = StreamsOf((*results[from])[to]), receiving = StreamsOf((*results[to])[from]);
      ASSERT_EQ(sending.size(), data_streams + 1);
      for (size_t stream = 0; stream < sending.size(); ++stream) {
        std::string text = std::to_string(from) + ">" + std::to_string(to) + " stream " +
                           std::to_string(stream) + ";";
        SendTo(*sending[stream], text);
        EXPECT_EQ(ReadFrom(*receiving[stream], text.size()), text);
      }
    }
  }
}

TEST(TcpConnectTest, RanksOfGroupsOfAnySizeAreConnected) {
  for (int ranks : {1, 2, 3, 8}) ExpectConnected(TcpGroup(ranks).ConnectEach(), 1);
}

TEST(TcpConnectTest, EachNamedInterfaceHasAStream) {
  TcpGroup group(3);
  group.configure = [](BackendConfig& config) { config.network_interface = "lo,lo"; };
  ExpectConnected(group.ConnectEach(), 2);
}

TEST(TcpConnectTest, RanksMeetAtIpv6Addresses) {
  Fd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress loopback = *SocketAddress::FromNumeric("::1", 0);
  if (!probe || bind(probe.get(), loopback.raw(), loopback.raw_size()) != 0) {
    GTEST_SKIP() << "this host has no ::1";
  }
  TcpGroup group(2);
  group.configure = [](BackendConfig& config) { config.host = "::1"; };
  ExpectConnected(group.ConnectEach(), 1);
}

int OptionOf(const Fd& socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(socket.get(), level, option, &value, &size), 0);
  return value;
}

TEST(TcpConnectTest, SocketsOfBothSidesHaveTheOptions) {
  auto results = TcpGroup(2).ConnectEach();
  ASSERT_THAT(TextsOf(results), Each("ok"));
  for (size_t rank = 0; rank < 2; ++rank) {
    for (const Fd* socket : StreamsOf((*results[rank])[1 - rank])) {
      EXPECT_NE(fcntl(socket->get(), F_GETFL) & O_NONBLOCK, 0);
      EXPECT_NE(fcntl(socket->get(), F_GETFD) & FD_CLOEXEC, 0);
      EXPECT_NE(OptionOf(*socket, IPPROTO_TCP, TCP_NODELAY), 0);
      EXPECT_NE(OptionOf(*socket, SOL_SOCKET, SO_KEEPALIVE), 0);
      EXPECT_EQ(OptionOf(*socket, IPPROTO_TCP, TCP_KEEPIDLE), 10);
      EXPECT_EQ(OptionOf(*socket, IPPROTO_TCP, TCP_KEEPINTVL), 5);
      EXPECT_EQ(OptionOf(*socket, IPPROTO_TCP, TCP_KEEPCNT), 4);
      EXPECT_EQ(OptionOf(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    }
  }
}

TEST(TcpConnectTest, AGroupAsksTheStoreForEachAddressOnce) {
  TcpGroup group(8);
  ExpectConnected(group.ConnectEach(), 1);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(group.keys->gets["tcp/address/" + std::to_string(rank)], 8) << "one per reader";
    EXPECT_EQ(group.keys->checks["tcp/address/" + std::to_string(rank)], 0);
  }
}

TEST(TcpConnectTest, UnequalNumbersOfInterfacesAreAnErrorThatNamesTheRanks) {
  TcpGroup group(3);
  group.configure = [](BackendConfig& config) {
    config.global_ranks = {4, 6, 8};
    config.network_interface = config.group_rank == 1 ? "lo,lo" : "lo";
  };
  auto results = group.ConnectEach();
  for (const auto& result : results) EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(TextsOf(results),
              Each("GLOO_SOCKET_IFNAME names different numbers of interfaces: 1 on ranks 4, 8, 2 "
                   "on rank 6: want the same number on all ranks"));
}

TEST(TcpConnectTest, AMissingInterfaceIsNamed) {
  TcpGroup group(1);
  group.configure = [](BackendConfig& config) { config.network_interface = "lo,nonexistent"; };
  EXPECT_THAT(TextsOf(group.ConnectEach()),
              Each("listen at interface nonexistent (GLOO_SOCKET_IFNAME): No such device"));
}

TEST(TcpConnectTest, TooManyInterfacesAreAnError) {
  TcpGroup group(1);
  group.configure = [](BackendConfig& config) {
    for (int i = 0; i < 17; ++i) config.network_interface += i == 0 ? "lo" : ",lo";
  };
  auto results = group.ConnectEach();
  EXPECT_EQ(results[0].error().code, ErrorCode::kInvalid);
  EXPECT_THAT(TextsOf(results), Each(HasSubstr("17 interfaces: want at most 16")));
}

TEST(TcpConnectTest, ARankThatCannotListenFailsAllAtOnce) {
  TcpGroup group(4);  // rank 3 never comes
  group.configure = [](BackendConfig& config) {
    if (config.group_rank == 1) config.host = "192.0.2.1";  // for documentation (RFC 5737)
  };
  std::vector<std::jthread> ranks;
  for (int rank : {0, 1, 2}) {
    ranks.emplace_back([&, rank] {
      auto sockets = group.Connect(rank);
      ASSERT_FALSE(sockets);
      EXPECT_EQ(sockets.error().code, ErrorCode::kSystem);
      EXPECT_THAT(sockets.error().message, StartsWith("rank 1: listen at 192.0.2.1: "));
    });
  }
}

TEST(TcpConnectTest, MissingRanksAreNamed) {
  TcpGroup group(3);
  group.configure = [](BackendConfig& config) { config.timeout = milliseconds(50); };
  auto sockets = group.Connect(1);
  ASSERT_FALSE(sockets);
  EXPECT_EQ(sockets.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(sockets.error().message, "no address from ranks 0, 2 after 50 ms");
  sockets = group.Connect(2);
  ASSERT_FALSE(sockets);
  EXPECT_EQ(sockets.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(sockets.error().message, "no address from ranks 0, 2 after 50 ms")
      << "the first reason, although this rank has come";
}

TEST(TcpConnectTest, ADamagedAddressIsAnErrorThatNamesTheRank) {
  TcpGroup group(2);
  MemoryStore store(group.keys);
  ASSERT_TRUE(store.Set("tcp/address/1", "\x01?"));
  ASSERT_TRUE(store.Add("tcp/addresses", 1));
  auto sockets = group.Connect(0);
  ASSERT_FALSE(sockets);
  EXPECT_EQ(sockets.error().code, ErrorCode::kProtocol);
  EXPECT_EQ(sockets.error().message, "rank 1: the address of a rank in the store is damaged");
}

TEST(TcpConnectTest, AnErrorOfTheStoreIsReported) {
  TcpGroup group(2);
  group.keys->FailWith({ErrorCode::kPeerLost, "the store is gone"});
  auto sockets = group.Connect(0);
  ASSERT_FALSE(sockets);
  EXPECT_EQ(sockets.error().code, ErrorCode::kProtocol);
  EXPECT_EQ(sockets.error().message, "the store is gone");
}

struct TcpDeathTest : testing::Test {
  TcpDeathTest() {
    group.configure = [this](BackendConfig& config) { config.deaths = DeathWatch(page); };
  }

  void ExpectCancelled(const ConnectResult& sockets) {
    ASSERT_FALSE(sockets);
    EXPECT_EQ(sockets.error().code, ErrorCode::kCancelled);
    EXPECT_THAT(sockets.error().message, StartsWith("rank 1 was killed by SIGKILL; waited "));
  }

  StatusPage page = *StatusPage::Create();
  TcpGroup group{2};
};

TEST_F(TcpDeathTest, ADeathEndsTheWaitForAddresses) {
  std::jthread zero([&] { ExpectCancelled(group.Connect(0)); });
  group.AddressOf(0);
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
}

TEST_F(TcpDeathTest, ADeathEndsTheWaitForConnections) {
  Turn turn;
  std::jthread zero([&] {
    ExpectCancelled(group.Connect(0));
    turn.Pass();
  });
  std::jthread one([&] {
    LateStore store(group.keys, turn);
    ExpectCancelled(ConnectAll(group.Config(store, 1)));
  });
  MemoryStore store(group.keys);
  ASSERT_TRUE(store.Get("tcp/ready", seconds(60)));
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
}

// Store that fails when its rank is connected and would publish that; not
// before `until`, if given.
struct MuteStore : MemoryStore {
  MuteStore(std::shared_ptr<MemoryKeys> keys, Turn* turn)
      : MemoryStore(std::move(keys)), until(turn) {}
  Result<int64_t> Add(std::string_view key, int64_t delta) override {
    if (!key.ends_with("/good")) return MemoryStore::Add(key, delta);
    if (until != nullptr) until->Await();
    return Error{ErrorCode::kPeerLost, "the store is gone"};
  }
  Turn* const until;
};

TEST(TcpConnectTest, ARankThatIsLostBeforeAllAgreeIsNamedAtOnce) {
  TcpGroup group(3);
  std::vector<std::jthread> ranks;
  for (int rank : {0, 2}) {
    ranks.emplace_back([&, rank] {
      auto sockets = group.Connect(rank);
      ASSERT_FALSE(sockets);
      EXPECT_EQ(sockets.error().code, ErrorCode::kPeerLost);
      EXPECT_THAT(sockets.error().message, StartsWith("lost rank 1: "));
    });
  }
  MuteStore store(group.keys, nullptr);
  EXPECT_FALSE(ConnectAll(group.Config(store, 1)));
}

TEST(TcpConnectTest, ATimeoutNamesTheRanksWithoutConfirmation) {
  TcpGroup group(3);
  group.configure = [](BackendConfig& config) {
    if (config.group_rank == 0) config.timeout = seconds(2);
  };
  Turn turn;
  std::jthread one([&] {
    MuteStore store(group.keys, &turn);
    EXPECT_FALSE(ConnectAll(group.Config(store, 1)));
  });
  auto expect_timeout = [&](int rank) {
    auto sockets = group.Connect(rank);
    ASSERT_FALSE(sockets);
    EXPECT_EQ(sockets.error().code, ErrorCode::kTimeout);
    EXPECT_EQ(sockets.error().message,
              "no confirmation of all connections from rank 1 after 2000 ms");
  };
  std::jthread two([&] { expect_timeout(2); });
  expect_timeout(0);
  turn.Pass();
}

// Rank 1 leaves after it has published its address, so that rank 2 is refused
// and rank 0 waits.
TEST(TcpConnectTest, ARankThatLeavesBeforeItConnectsIsNamedAfterTheTimeout) {
  TcpGroup group(3);
  group.configure = [](BackendConfig& config) {
    if (config.group_rank != 1) config.timeout = seconds(1);
  };
  struct LeavingStore : MemoryStore {
    using MemoryStore::MemoryStore;
    Result<std::vector<std::string>> MultiGet(std::span<const std::string>, milliseconds) override {
      return Error{ErrorCode::kPeerLost, "left"};
    }
  };
  std::vector<std::string> texts(3);
  std::vector<std::jthread> ranks;
  for (size_t rank : {0U, 2U}) {
    ranks.emplace_back([&, rank] {
      auto sockets = group.Connect(static_cast<int>(rank));
      texts[rank] = sockets ? "ok" : sockets.error().message;
    });
  }
  LeavingStore store(group.keys);
  EXPECT_FALSE(ConnectAll(group.Config(store, 1)));
  ranks.clear();
  EXPECT_THAT(texts[0], HasSubstr(": no connection with rank 1 after 1000 ms"));
  EXPECT_EQ(texts[0], texts[2]);
}

TEST(TcpConnectTest, AWaitForConnectionsEndsWhenAnotherRankGivesUp) {
  TcpGroup group(2);
  Turn turn;
  std::jthread one([&] {
    LateStore store(group.keys, turn);
    EXPECT_EQ(ConnectAll(group.Config(store, 1)).error().message, "rank 1: mute");
  });
  std::jthread zero([&] {
    EXPECT_EQ(group.Connect(0).error().message, "rank 1: mute");
    turn.Pass();
  });
  MemoryStore store(group.keys);
  ASSERT_TRUE(store.Get("tcp/ready", seconds(60)));
  ASSERT_TRUE(store.Set("tcp/verdict", "8 rank 1: mute"));
}

TEST(TcpConnectTest, AShortageOfDescriptorsNamesTheNeed) {
  pid_t child = test::Fork([] {
    TcpGroup group(8);
    rlimit limit{.rlim_cur = 60, .rlim_max = 60};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    auto results = group.ConnectEach();
    for (const auto& result : results) {
      if (result || result.error().code != ErrorCode::kExhausted) return 2;
      if (result.error().message != results[0].error().message) return 3;
    }
    auto text = HasSubstr(
        "Too many open files; each of 8 ranks needs 15 descriptors for connections, the limit of "
        "this one is 60 (ulimit -n)");
    return testing::Matches(AllOf(StartsWith("rank "), text))(results[0].error().message) ? 0 : 4;
  });
  EXPECT_EQ(test::WaitForExit(child), ProcessExit{});
}

}  // namespace
}  // namespace rankrun::comm::tcp
