// How the ranks of the Gloo plug-in connect to and verify each other.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status/status_page.h"
#include "tests/comm/backend_calls.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using transport::BackendGroup;
using transport::TestCall;
using transport::Turn;

Result<void> Barrier(Backend& backend) {
  TestCall call({.kind = Operation::Kind::kBarrier, .number = 1});
  return Barrier(backend, call.call);
}

// Returns the error of Create on each rank, or "ok".
std::vector<std::string> Created(const BackendGroup& group) {
  std::vector<std::string> words(static_cast<size_t>(group.ranks()), "ok");
  std::vector<std::jthread> threads;
  for (int r = 0; r < group.ranks(); ++r) {
    threads.emplace_back([&, r] {
      MemoryStore store(group.keys);
      auto backend = group.Create(group.Config(store, r));
      if (!backend) words[static_cast<size_t>(r)] = backend.error().message;
    });
  }
  threads.clear();
  return words;
}

TEST(GlooMeshTest, UnequalNumbersOfInterfacesAreAnErrorThatNamesTheRanks) {
  BackendGroup group("gloo", 3);
  group.configure = [](BackendConfig& config) {
    config.network_interface = config.group_rank == 1 ? "lo,lo" : "lo";
  };
  EXPECT_THAT(Created(group), testing::Each(AllOf(HasSubstr("GLOO_SOCKET_IFNAME"),
                                                  HasSubstr("1 on ranks 0, 2, 2 on rank 1"))));
}

TEST(GlooMeshTest, OfSeveralInterfacesTheFirstIsUsed) {
  BackendGroup group("gloo", 2);
  group.configure = [](BackendConfig& config) { config.network_interface = "lo,nonexistent"; };
  group.Run([](Backend& backend, int) { EXPECT_TRUE(Barrier(backend)); });
}

TEST(GlooMeshTest, AMissingInterfaceIsNamed) {
  BackendGroup group("gloo", 1);
  group.configure = [](BackendConfig& config) { config.network_interface = "nonexistent"; };
  EXPECT_THAT(Created(group)[0],
              HasSubstr("listen at interface nonexistent (GLOO_SOCKET_IFNAME): No such device"));
}

TEST(GlooMeshTest, MissingRanksAreNamed) {
  BackendGroup group("gloo", 3);
  group.configure = [](BackendConfig& config) { config.timeout = milliseconds(50); };
  MemoryStore store(group.keys);
  auto backend = group.Create(group.Config(store, 1));
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(backend.error().message, HasSubstr("no address from ranks 0, 2 after 50 ms"));
}

// Store that fails when its rank has verified all peers and would publish that;
// not before `until`, if given.
struct MuteStore : MemoryStore {
  MuteStore(std::shared_ptr<MemoryKeys> keys, Turn* turn)
      : MemoryStore(std::move(keys)), until(turn) {}
  Result<int64_t> Add(std::string_view, int64_t) override {
    if (until != nullptr) until->Await();
    return Error{ErrorCode::kPeerLost, "the store is gone"};
  }
  Turn* const until;
};

TEST(GlooMeshTest, ARankThatIsLostBeforeAllAgreeIsNamedAtOnce) {
  BackendGroup group("gloo", 3);
  std::vector<std::jthread> ranks;
  auto began = std::chrono::steady_clock::now();
  for (int rank : {0, 2}) {
    ranks.emplace_back([&, rank] {
      MemoryStore store(group.keys);
      auto backend = group.Create(group.Config(store, rank));
      ASSERT_FALSE(backend);
      EXPECT_EQ(backend.error().code, ErrorCode::kPeerLost);
      EXPECT_THAT(backend.error().message, testing::StartsWith("lost rank 1: "));
    });
  }
  MuteStore store(group.keys, nullptr);
  EXPECT_FALSE(group.Create(group.Config(store, 1)));
  ranks.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30)) << "half the time-out";
}

TEST(GlooMeshTest, ATimeoutNamesTheRanksWithoutConfirmation) {
  BackendGroup group("gloo", 3);
  group.configure = [](BackendConfig& config) {
    if (config.group_rank == 0) config.timeout = seconds(2);
  };
  Turn turn;
  std::jthread one([&] {
    MuteStore store(group.keys, &turn);
    EXPECT_FALSE(group.Create(group.Config(store, 1)));
  });
  auto text = HasSubstr("no confirmation of all connections from rank 1 after 2000 ms");
  std::jthread two([&] {
    MemoryStore store(group.keys);
    auto backend = group.Create(group.Config(store, 2));
    ASSERT_FALSE(backend);
    EXPECT_THAT(backend.error().message, text);
  });
  MemoryStore store(group.keys);
  auto backend = group.Create(group.Config(store, 0));
  turn.Pass();
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(backend.error().message, text);
}

// Publishes a PeerInfo without ever connecting. The rank with the higher address
// connects, so all other ranks wait for this one.
void PublishMute(store::Store& store, int mesh) {
  sockaddr_storage address{};
  auto& inet = reinterpret_cast<sockaddr_in&>(address);
  inet.sin_family = AF_INET;
  inet.sin_port = htons(1);
  inet.sin_addr.s_addr = inet_addr("127.255.255.254");
  std::string card(16, 's');
  card.append(sizeof(uint32_t), '\0');
  auto own = store.Get("gloo/mesh_" + std::to_string(mesh) + "/0", seconds(60));
  ASSERT_TRUE(own);
  // Gloo's address begins with this struct and may be longer.
  std::string bytes = own->substr(card.size());
  std::memcpy(bytes.data(), &address, sizeof address);
  ASSERT_TRUE(store.Set("gloo/mesh_" + std::to_string(mesh) + "/1", card + bytes));
}

TEST(GlooMeshTest, ADeathEndsTheWaitForAConnection) {
  StatusPage page = *StatusPage::Create();
  BackendGroup group("gloo", 2);
  group.configure = [&](BackendConfig& config) { config.deaths = DeathWatch(page); };
  std::string told;
  std::jthread zero([&] {
    MemoryStore store(group.keys);
    auto backend = group.Create(group.Config(store, 0));
    told = backend ? "ok" : backend.error().message;
  });
  MemoryStore store(group.keys);
  PublishMute(store, 0);
  auto began = std::chrono::steady_clock::now();
  page.PublishPeerDeath("rank 1 was killed by SIGKILL");
  zero.join();
  EXPECT_THAT(told, testing::StartsWith("rank 1 was killed by SIGKILL; waited "));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30)) << "half the time-out";
}

TEST(GlooMeshTest, AWaitForAConnectionEndsWhenOtherRanksGiveUp) {
  BackendGroup group("gloo", 2);
  std::string told;
  auto began = std::chrono::steady_clock::now();
  std::jthread zero([&] {
    MemoryStore store(group.keys);
    auto backend = group.Create(group.Config(store, 0));
    told = backend ? "ok" : backend.error().message;
  });
  MemoryStore store(group.keys);
  for (int mesh = 0; mesh < 4; ++mesh) {
    PublishMute(store, mesh);
    ASSERT_TRUE(store.Set("gloo/mesh_" + std::to_string(mesh) + "/verdict", "rank 1: mute"));
  }
  zero.join();
  EXPECT_THAT(told, testing::EndsWith("the last time: rank 1: mute"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(30)) << "half the time-out";
}

// Connects to the port that rank 0 has published for rank 1.
Fd ConnectToRankZero(store::Store& store) {
  constexpr size_t kHead = 16 + sizeof(uint32_t);  // secret, number of interfaces
  auto card = store.Get("gloo/mesh_0/0", seconds(60));
  EXPECT_TRUE(card);
  sockaddr_storage address;
  std::memcpy(&address, card->data() + kHead, sizeof address);
  Fd stranger(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(stranger.get(), reinterpret_cast<const sockaddr*>(&address),
                    address.ss_family == AF_INET ? 16 : 28),
            0);
  return stranger;
}

struct GlooStrangerTest : testing::TestWithParam<std::string> {
  // Runs a group of two, while a stranger sends GetParam() to rank 0's port
  // before rank 1 connects. Returns whether the stranger took the place of a
  // rank: of two ranks, the one with the lower port accepts the connection.
  bool TakesAPlace() {
    BackendGroup group("gloo", 2);
    auto run = [&](int rank) {
      MemoryStore store(group.keys);
      auto backend = group.Create(group.Config(store, rank));
      ASSERT_TRUE(backend) << backend.error().message;
      auto ok = Barrier(**backend);
      EXPECT_TRUE(ok) << ok.error().message;
    };
    MemoryStore store(group.keys);
    std::jthread zero(run, 0);
    Fd stranger = ConnectToRankZero(store);
    EXPECT_EQ(send(stranger.get(), GetParam().data(), GetParam().size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(GetParam().size()));
    std::jthread one(run, 1);
    zero.join();
    one.join();
    std::string again = "gloo/mesh_1/0";
    return *store.Check(std::span(&again, 1));
  }
};

TEST_P(GlooStrangerTest, TheMeshIsBuiltAgainWithoutTheStranger) {
  int places = 0;
  for (int round = 0; places == 0 && round < 40; ++round) places += TakesAPlace() ? 1 : 0;
  EXPECT_EQ(places, 1);
}

INSTANTIATE_TEST_SUITE_P(Words, GlooStrangerTest,
                         testing::Values("", "?", std::string(10'000, 'x'),
                                         "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));

}  // namespace
}  // namespace rankrun::comm::gloo
