// Ways for ranks to meet, and their places afterwards.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/base/net/two_hosts.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FreePort;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Clears the environment, then sums over all ranks.
std::string SumAt(const InitOptions& options) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  std::string sum = SumOf(Init(options));
  Destroy();
  return sum;
}

struct MeetingTest : testing::TestWithParam<const char*> {
  static std::string PortOfTheStore() { return getenv("MASTER_PORT"); }
};

INSTANTIATE_TEST_SUITE_P(Backends, MeetingTest, testing::Values("shm", "tcp", "gloo"),
                         NameOfBackend);

TEST_P(MeetingTest, ByTcpRankZeroServesTheStore) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "?world_size=3";
  auto sums = OnRanks(3, [&](int r) {
    return SumAt({.timeout = seconds(60), .backend = GetParam(), .init_method = url, .rank = r});
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, ASlashMayEndTheAddressOfTheStore) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "/?world_size=2";
  auto sums = OnRanks(2, [&](int r) {
    return SumAt({.timeout = seconds(60), .backend = GetParam(), .init_method = url, .rank = r});
  });
  EXPECT_THAT(sums, Each("2 of 2"));
}

// A rank that is faster than rank 0 finds the store of the world before.
TEST_P(MeetingTest, AgainAtTheSamePortOfRankZero) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "?world_size=3";
  auto sums = OnRanks(3, [&](int r) {
    std::string sum;
    for (int i = 0; i < 40; ++i) {
      sum = SumAt({.timeout = seconds(20), .backend = GetParam(), .init_method = url, .rank = r});
    }
    return sum;
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, ARankThatComesAfterTheRefusalHearsTheReason) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "?world_size=3";
  InSharedMemory<std::atomic<bool>> refused;
  auto texts = OnRanks(3, [&](int r) {
    while (r == 2 && !*refused) std::this_thread::yield();
    InitOptions options{.timeout = seconds(20),
                        .backend = r == 0 ? "missing" : GetParam(),
                        .init_method = url,
                        .rank = r};
    std::string text = ErrorOf([&] { SumAt(options); });
    if (r == 1) refused->store(true);
    return text;
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistError: "), HasSubstr("missing"))));
}

TEST_P(MeetingTest, AStoppedRankThatServesTheStoreIsNamed) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort()) + "?world_size=3";
  InSharedMemory<std::atomic<int>> failed;
  InSharedMemory<std::atomic<pid_t>> server;
  auto texts = OnRanks(3, [&](int r) {
    if (r == 0) server->store(getpid());
    ProcessGroup& world = Init({.backend = GetParam(), .init_method = url, .rank = r});
    SumOf(world);
    if (r == 0) raise(SIGSTOP);
    std::vector<int64_t> one{1};
    std::string text = ErrorOf([&] { world.AllReduce(one, ReduceOp::kSum, milliseconds(500)); });
    if (r != 0 && ++*failed == 2) kill(*server, SIGCONT);
    return text;
  });
  for (size_t r : {1U, 2U}) {
    EXPECT_THAT(texts[r], HasSubstr("rank 0, which serves the store"));
  }
}

TEST_P(MeetingTest, InAFileThatIsNotThereYet) {
  test::TempFolder folder;
  std::string url = "file://" + folder.Path("meet") + "?rank=";
  auto sums = OnRanks(3, [&](int r) {
    return SumAt({.backend = GetParam(), .init_method = url + std::to_string(r), .world_size = 3});
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, TheFileIsRemovedByTheLastRankAndServesAgain) {
  test::TempFolder folder;
  std::string path = folder.Path("meet");
  auto sums = OnRanks(3, [&](int r) {
    std::string sum;
    for (int i = 0; i < 20; ++i) {
      sum = SumAt(
          {.backend = GetParam(), .init_method = "file://" + path, .rank = r, .world_size = 3});
    }
    return sum;
  });
  EXPECT_THAT(sums, Each("3 of 3"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_P(MeetingTest, AFileInWhichAnInitFailedServesAgain) {
  test::TempFolder folder;
  std::string path = folder.Path("meet");
  auto sums = OnRanks(2, [&](int r) {
    InitOptions options{.backend = r == 0 ? "missing" : GetParam(),
                        .init_method = "file://" + path,
                        .rank = r,
                        .world_size = 2};
    std::string text = ErrorOf([&] { SumAt(options); });
    options.backend = GetParam();
    return text.substr(0, text.find(':')) + ", " + SumAt(options);
  });
  EXPECT_THAT(sums, Each("DistError, 2 of 2"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_P(MeetingTest, ByTcpAtAnotherPortThanTheAgentsRankZeroServesTheStore) {
  std::string url = "tcp://127.0.0.1:" + std::to_string(FreePort());
  auto sums = OnRanks(3, [&](int) {
    std::string sum = SumOf(Init({.backend = GetParam(), .init_method = url}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, ByTcpAtTheAgentsPortTheAgentServesTheStore) {
  auto sums = OnRanks(3, [&](int) {
    std::string url = "tcp://localhost:" + PortOfTheStore();
    std::string sum = SumOf(Init({.backend = GetParam(), .init_method = url}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, ThePlaceMayComeFromTheEnvironment) {
  test::TempFolder folder;
  std::string url = "file://" + folder.Path("meet");
  auto sums = OnRanks(3, [&](int) {
    std::string sum = SumOf(Init({.backend = GetParam(), .init_method = url}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST_P(MeetingTest, InAStoreOfTheProgram) {
  auto sums = OnRanks(3, [](int r) {
    auto port = static_cast<uint16_t>(std::stoi(PortOfTheStore()));
    auto store = std::make_shared<TcpStore>(TcpStoreOptions{.port = port});
    return SumAt({.backend = GetParam(),
                  .rank = r,
                  .world_size = 3,
                  .store = std::make_shared<PrefixStore>("job", store)});
  });
  EXPECT_THAT(sums, Each("3 of 3"));
}

TEST(MeetingOnTwoHostsTest, RanksListenWhereTheyReachTheStoreOfTheProgram) {
  const auto hosts = test::TwoHosts::Make();
  if (hosts == nullptr) GTEST_SKIP() << "network namespaces are not permitted here";
  auto sums = OnRanks(2, [&](int r) {
    EXPECT_TRUE(hosts->Enter(static_cast<size_t>(r)));
    setenv("LOCAL_WORLD_SIZE", "1", 1);
    setenv("LOCAL_RANK", "0", 1);
    const TcpStoreOptions at_host_0{.host = test::TwoHosts::kAddresses[0], .is_server = r == 0};
    const auto store = std::make_shared<TcpStore>(at_host_0);
    std::string sum = SumOf(Init({.timeout = seconds(60),
                                  .backend = "tcp",
                                  .rank = r,
                                  .world_size = 2,
                                  .store = std::make_shared<PrefixStore>("job", store)}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("2 of 2"));
}

TEST_P(MeetingTest, AStoreThatIsTheServerServesUntilDestroyIfTheProgramLetsGoOfIt) {
  const auto port = static_cast<uint16_t>(FreePort());
  auto sums = OnRanks(2, [&](int r) {
    Init({.backend = GetParam(),
          .rank = r,
          .world_size = 2,
          .store = std::make_shared<TcpStore>(TcpStoreOptions{.port = port, .is_server = r == 0})});
    std::string sum = SumOf(NewGroup({}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("2 of 2"));
}

TEST_P(MeetingTest, ARankThatExitsAtOnceHasBeenMetByAll) {
  for (int i = 0; i < 20; ++i) {
    auto texts = OnRanks(3, [](int) {
      Init({.backend = GetParam()});
      return std::string("met");  // and exits
    });
    ASSERT_THAT(texts, Each("met"));
  }
}

TEST_P(MeetingTest, AGroupKnowsItself) {
  auto texts = InWorld(3, GetParam(), [](ProcessGroup& world) {
    ProcessGroup& pair =
        NewGroup({.ranks = {2, 1}, .sort_ranks = false, .description = "back to front"});
    if (!pair.is_member()) return pair.description() + ", " + ErrorOf([&] { pair.backend(); });
    return world.backend() + " " + pair.backend() + " " + std::to_string(pair.group_rank()) +
           " of " + std::to_string(pair.world_size()) + ", first " +
           std::to_string(pair.GlobalRankOf(GroupRank{0}));
  });
  std::string backends = std::string(GetParam()) + " " + GetParam();
  EXPECT_THAT(texts,
              testing::ElementsAre(AllOf(StartsWith("back to front, DistError: backend of "),
                                         EndsWith(": rank 0 is no member of it")),
                                   backends + " 1 of 2, first 2", backends + " 0 of 2, first 2"));
}

TEST(LauncherTest, TheLocalRankIsThatOfTheLauncher) {
  for (const char* name : {"RANK", "LOCAL_RANK"}) unsetenv(name);
  EXPECT_EQ(NodeLocalRank(7), 7);
  EXPECT_EQ(ErrorOf([] { NodeLocalRank(); }),
            "DistError: NodeLocalRank: LOCAL_RANK is not set: want a whole number >= 0 (set by "
            "rankrun or torchrun)");
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(NodeLocalRank(), 1);
  setenv("LOCAL_RANK", "2", 1);
  EXPECT_EQ(NodeLocalRank(), 2);
}

TEST(LauncherTest, WhoHasStartedThisProcessIsKnown) {
  unsetenv("TORCHELASTIC_RUN_ID");
  EXPECT_FALSE(LaunchedByAgent());
  setenv("TORCHELASTIC_RUN_ID", "none", 1);
  EXPECT_TRUE(LaunchedByAgent());
}

}  // namespace
}  // namespace rankrun::comm
