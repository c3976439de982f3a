// How the ranks of the Gloo plug-in find and prove each other.

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/comm/gloo_group.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Result<void> Barrier(Backend& backend) {
  const TestCall call({.kind = Operation::Kind::kBarrier, .number = 1});
  return backend.Barrier(call.call);
}

// What Create says on each rank.
std::vector<std::string> Created(const GlooGroup& group) {
  std::vector<std::string> words(static_cast<size_t>(group.ranks()), "ok");
  std::vector<std::jthread> threads;
  for (int r = 0; r < group.ranks(); ++r) {
    threads.emplace_back([&, r] {
      MemoryStore store(group.keys);
      const auto backend = GlooGroup::Create(group.Config(store, r));
      if (!backend) words[static_cast<size_t>(r)] = backend.error().message;
    });
  }
  threads.clear();
  return words;
}

TEST(GlooMeshTest, UnequalNumbersOfInterfacesAreAnErrorThatNamesTheRanks) {
  GlooGroup group(3);
  group.configure = [](BackendConfig& config) {
    config.network_interface = config.group_rank == 1 ? "lo,lo" : "lo";
  };
  EXPECT_THAT(Created(group), testing::Each(AllOf(HasSubstr("GLOO_SOCKET_IFNAME"),
                                                  HasSubstr("1 on ranks 0, 2, 2 on rank 1"))));
}

TEST(GlooMeshTest, OfSeveralInterfacesTheFirstIsUsed) {
  GlooGroup group(2);
  group.configure = [](BackendConfig& config) { config.network_interface = "lo,nonexistent"; };
  group.Run([](Backend& backend, int) { EXPECT_TRUE(Barrier(backend)); });
}

TEST(GlooMeshTest, AnInterfaceThatIsNotThereIsNamed) {
  GlooGroup group(1);
  group.configure = [](BackendConfig& config) { config.network_interface = "nonexistent"; };
  EXPECT_THAT(Created(group)[0],
              HasSubstr("listen at interface nonexistent (GLOO_SOCKET_IFNAME): No such device"));
}

TEST(GlooMeshTest, RanksThatDoNotComeAreNamed) {
  GlooGroup group(3);
  group.configure = [](BackendConfig& config) { config.timeout = milliseconds(50); };
  MemoryStore store(group.keys);
  const auto backend = GlooGroup::Create(group.Config(store, 1));
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(backend.error().message, HasSubstr("no address from ranks 0, 2 after 50 ms"));
}

// Connects to the port that rank 0 has published for rank 1.
Fd ConnectToRankZero(store::Store& store) {
  constexpr size_t kHead = 16 + sizeof(uint32_t);  // secret, number of interfaces
  const auto card = store.Get("gloo/mesh_0/0", seconds(60));
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
  // One group of two with a stranger that says GetParam() at rank 0's port
  // before rank 1 is there. Whether it had a rank's place: of two ranks that
  // with the lower port number is the one that is connected to.
  bool TakesAPlace() {
    GlooGroup group(2);
    const auto run = [&](int rank) {
      MemoryStore store(group.keys);
      auto backend = GlooGroup::Create(group.Config(store, rank));
      ASSERT_TRUE(backend) << backend.error().message;
      const auto ok = Barrier(**backend);
      EXPECT_TRUE(ok) << ok.error().message;
    };
    MemoryStore store(group.keys);
    std::jthread zero(run, 0);
    const Fd stranger = ConnectToRankZero(store);
    EXPECT_EQ(send(stranger.get(), GetParam().data(), GetParam().size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(GetParam().size()));
    std::jthread one(run, 1);
    zero.join();
    one.join();
    const std::string again = "gloo/mesh_1/0";
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
}  // namespace rankrun::comm
