// Errors of Init, NewGroup and Destroy. They must be fast, reach all ranks
// concerned, and name the rank that caused them. The numbers are those of the
// list in docs/torch-distributed.md.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>

#include "store/clients/tcp_store.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kShort{300};
// Limit for errors that must not wait for a time-out of 60 s; includes the
// start of processes.
constexpr milliseconds kSoon{20'000};

// Calls Init in a separate process with the environment of rank 0 of 1.
std::string ErrorOfInit(const std::function<InitOptions()>& options) {
  auto texts = OnRanks(1, [&](int) {
    InitOptions init = options();
    return ErrorOf([&] { Init(init); });
  });
  return texts[0];
}

struct NegativeStartTest : testing::TestWithParam<const char*> {
  static InitOptions Options(milliseconds timeout = std::chrono::seconds(60)) {
    return {.timeout = timeout, .backend = GetParam()};
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, NegativeStartTest, testing::Values("shm", "tcp", "gloo"),
                         NameOfBackend);

TEST_P(NegativeStartTest, N01_InitTwice) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::string text = ErrorOf([] { Init(); });
    world.Barrier();  // the first world still works
    return text;
  });
  EXPECT_THAT(told, Each("DistError: Init: there is a world process group already: Destroy() it "
                         "first"));
}

// The other rank comes once the second thread has its error.
TEST_P(NegativeStartTest, N01_InitInTwoThreads) {
  auto told = OnRanks(2, [](int r) {
    TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
    std::string text = "no error";
    std::jthread second;
    if (r == 0) {
      second = std::jthread([&] {
        store.Wait({"rankrun/attempt_0/world_0/came/0"}, std::chrono::seconds(60));
        text = ErrorOf([] { Init(Options()); }, kSoon);
        store.Set("second", "");
      });
    } else {
      store.Wait({"second"}, std::chrono::seconds(60));
    }
    Init(Options()).Barrier();
    if (r == 0) second.join();
    Destroy();
    return text;
  });
  EXPECT_THAT(told, testing::ElementsAre("DistError: Init: another thread of this process is in "
                                         "Init: want one call",
                                         "no error"));
}

TEST(NegativeStart, N02_RankMissingOrEmpty) {
  const std::string wanted =
      "DistError: Init: RANK is not set: want a whole number >= 0 (set by rankrun or torchrun)";
  EXPECT_EQ(ErrorOfInit([] {
              unsetenv("RANK");
              return InitOptions();
            }),
            wanted);
  EXPECT_EQ(ErrorOfInit([] {
              setenv("RANK", "", 1);
              return InitOptions();
            }),
            wanted);
}

TEST(NegativeStart, N03_RankInTheUrlAndAsAnOption) {
  std::string told = ErrorOfInit([] {
    return InitOptions{.init_method = "tcp://127.0.0.1:1?rank=0&world_size=1", .rank = 0};
  });
  EXPECT_EQ(told, "DistError: Init: rank is given as an option and in init_method: want one");
}

TEST(NegativeStart, AnAddressWithoutARankNamesTheWaysToGiveIt) {
  auto told = [](const char* unset, const InitOptions& options) {
    return ErrorOfInit([&] {
      unsetenv(unset);
      return options;
    });
  };
  const std::string wanted =
      " is missing: tcp:// and file:// need rank and world_size, as options, as "
      "?rank=0&world_size=2, or in RANK and WORLD_SIZE";
  EXPECT_EQ(told("RANK", {.init_method = "tcp://127.0.0.1:1"}), "DistError: Init: rank" + wanted);
  EXPECT_EQ(told("WORLD_SIZE", {.init_method = "file:///tmp/meet?rank=0"}),
            "DistError: Init: world_size" + wanted);
  EXPECT_EQ(told("", {.store = std::make_shared<HashStore>()}),
            "DistError: Init: rank and world_size are missing: a store needs rank and world_size, "
            "as options");
  EXPECT_EQ(
      told("", {.rank = 0, .store = std::make_shared<HashStore>()}),
      "DistError: Init: world_size is missing: a store needs rank and world_size, as options");
}

TEST(NegativeStart, AnAddressHasAHostAndAPort) {
  for (const char* bad :
       {"127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http",
        "127.0.0.1:", "127.0.0.1", "[::1]", ":29500", "", "/", "127.0.0.1/", "127.0.0.1:1//"}) {
    std::string url = "tcp://" + std::string(bad) + "?rank=0&world_size=1";
    const std::string told =
        ErrorOfInit([&] { return InitOptions{.timeout = kShort, .init_method = url}; });
    EXPECT_EQ(told, "DistError: Init: init_method \"" + url +
                        "\": want tcp://host:port, with a port 1..65535");
  }
}

TEST(NegativeStart, TheHostOfTheStoreHasNoPortAndNoScheme) {
  auto told = [](const char* host) {
    return ErrorOfInit([&] {
      setenv("MASTER_ADDR", host, 1);
      return InitOptions();
    });
  };
  EXPECT_EQ(told("node-1:29500"),
            "DistError: Init: MASTER_ADDR: want HOST or an IPv6 address without a port, got "
            "\"node-1:29500\"");
  EXPECT_EQ(told("tcp://node-1"),
            "DistError: Init: MASTER_ADDR: want HOST or an IPv6 address, got \"tcp://node-1\"");
}

TEST(NegativeStart, RankZeroOnAnotherHostThanTheStoresAddressSaysSo) {
  const std::string why = " is no address of this host";
  std::string of_variable = ErrorOfInit([] {
    setenv("MASTER_ADDR", "255.255.255.255", 1);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    setenv("MASTER_PORT", std::to_string(test::FreePort()).c_str(), 1);
    return InitOptions{.timeout = kShort};
  });
  EXPECT_THAT(of_variable, EndsWith("; rank 0 serves the store on this host, but 255.255.255.255 "
                                    "(MASTER_ADDR)" +
                                    why));
  std::string of_url = ErrorOfInit([] {
    std::string url = "tcp://255.255.255.254:" + std::to_string(test::FreePort());
    return InitOptions{.timeout = kShort, .init_method = url, .rank = 0, .world_size = 1};
  });
  EXPECT_THAT(of_url, EndsWith("; rank 0 serves the store on this host, but 255.255.255.254 "
                               "(init_method)" +
                               why));
}

TEST(NegativeStart, ARelativePathIsRefused) {
  std::string told = ErrorOfInit([] { return InitOptions{.init_method = "file://meet"}; });
  EXPECT_EQ(told,
            "DistError: Init: init_method \"file://meet\" has no absolute path: want file:///path");
}

TEST_P(NegativeStartTest, N04_TheFileOfAnEarlierRun) {
  test::TempFolder folder;
  std::string url = "file://" + folder.Path("meet") + "?world_size=2&rank=";
  auto run = [&] {
    return OnRanks(2, [&](int r) {
      InitOptions options = Options();
      options.init_method = url + std::to_string(r);
      return ErrorOf([&] { Init(options).Barrier(); });
    });
  };
  EXPECT_THAT(run(), Each("no error"));
  EXPECT_THAT(
      run(), Each(AllOf(StartsWith("DistError: Init: "), HasSubstr(folder.Path("meet")),
                        HasSubstr("in this run or an earlier one"), HasSubstr("; last written "))));
}

TEST(NegativeStart, N04_AFileThatIsNoStore) {
  test::TempFolder folder;
  std::string path = folder.Write("meet", "something else");
  std::string told = ErrorOfInit(
      [&] { return InitOptions{.init_method = "file://" + path + "?world_size=1&rank=0"}; });
  EXPECT_THAT(told, AllOf(StartsWith("DistError: Init: "), HasSubstr(path)));
}

TEST_P(NegativeStartTest, N05_OneRankNeverArrives) {
  auto told = OnRanks(3, [](int r) {
    if (r == 1) return std::string("absent");
    if (r == 2) return ErrorOf([] { Init(Options()); }, std::chrono::hours(1));
    auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
    auto store = store::TcpStore::Connect("127.0.0.1", port);
    std::string there = "rankrun/attempt_0/world_0/barrier/0/arrived/2";
    EXPECT_TRUE((*store)->Get(there, std::chrono::seconds(60)));
    return ErrorOf([] { Init(Options(kShort)); });  // rank 0's deadline holds for all ranks
  });
  for (size_t r : {0U, 2U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistTimeoutError: Init: "), HasSubstr("2 of 3 present"),
                               EndsWith("missing: rank 1")));
  }
}

TEST_P(NegativeStartTest, N06_NewGroupInAnotherOrder) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    bool other = world.global_rank() == 2;
    return ErrorOf([&] { NewGroup({.ranks = other ? std::vector{1, 2} : std::vector{0, 1}}); });
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: NewGroup: "),
                               HasSubstr("ranks 0, 1 want ranks 0,1"),
                               HasSubstr("rank 2 wants ranks 1,2"))));
}

TEST_P(NegativeStartTest, N06_NewGroupWithABadOptionOnOneRank) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    bool wrong = world.global_rank() == 1;
    std::string text = ErrorOf([&] {
      NewGroup({.ranks = wrong ? std::vector{0, 9} : std::vector{0, 1}});
    });
    ProcessGroup& pair = NewGroup({.ranks = {0, 1}});
    if (pair.is_member()) pair.Barrier();
    return text;
  });
  std::string reason = "rank 9 is not in the world: want 0..2";
  EXPECT_THAT(told, testing::ElementsAre("DistError: NewGroup: rank 1 refused it: " + reason,
                                         "DistError: NewGroup: " + reason,
                                         "DistError: NewGroup: rank 1 refused it: " + reason));
}

TEST_P(NegativeStartTest, ABadTimeoutOfALocalGroupFailsOnItsMembers) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    if (world.global_rank() == 2) return std::string();
    GroupOptions options{.ranks = {0, 1}, .use_local_synchronization = true};
    if (world.global_rank() == 1) options.timeout = milliseconds(0);
    std::string text = ErrorOf([&] { NewGroup(options); }, kSoon);
    options.timeout = {};
    NewGroup(options).Barrier();
    return text;
  });
  std::string reason = "timeout is 0 ms: want at least 1 ms";
  EXPECT_THAT(told[0], AllOf(StartsWith("DistError: NewGroup: join process group "),
                             EndsWith("wait for all ranks: rank 1: " + reason)));
  EXPECT_EQ(told[1], "DistError: NewGroup: " + reason);
}

TEST_P(NegativeStartTest, N20_MonitoredBarrierWithRanksAbsent) {
  struct Absent {
    std::vector<int> ranks;
    std::string words;
  };
  for (const Absent& absent : {Absent{{1}, "rank 1"}, Absent{{1, 2, 3}, "ranks 1-3"},
                               Absent{{0}, "rank 0"}, Absent{{0, 2}, "ranks 0, 2"}}) {
    auto told = InWorld(4, GetParam(), [&](ProcessGroup& world) {
      std::string text = "absent";
      bool here = std::find(absent.ranks.begin(), absent.ranks.end(), world.global_rank()) ==
                  absent.ranks.end();
      if (here) text = ErrorOf([&] { world.MonitoredBarrier(kShort); });
      world.Barrier();  // the world still works
      return text;
    });
    for (size_t r = 0; r < told.size(); ++r) {
      if (told[r] == "absent") continue;
      EXPECT_THAT(told[r], AllOf(StartsWith("DistTimeoutError: MonitoredBarrier #1 of the world"),
                                 EndsWith("missing: " + absent.words)));
    }
  }
}

TEST_P(NegativeStartTest, N20_MonitoredBarrierThatNamesTheFirst) {
  auto told = InWorld(4, GetParam(), [&](ProcessGroup& world) {
    std::string text = "absent";
    if (world.global_rank() % 3 == 0) {
      text = ErrorOf([&] { world.MonitoredBarrier(kShort, false); });
    }
    world.Barrier();
    return text;
  });
  EXPECT_THAT(told[0], EndsWith("missing: rank 1"));
  EXPECT_THAT(told[3], EndsWith("missing: rank 1"));
}

TEST_P(NegativeStartTest, N26_DestroyOfAGroupThatIsDestroyed) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    ProcessGroup& group = NewGroup({});
    Destroy(group);
    std::string text = ErrorOf([&] { Destroy(group); });
    world.Barrier();
    Destroy();
    Destroy();  // without a world
    return text;
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: Destroy: process group \"group_"),
                               EndsWith(" of 2) is destroyed already"))));
}

TEST_P(NegativeStartTest, N27_DestroyAndInitAHundredTimes) {
  auto told = OnRanks(3, [](int) {
    int64_t sum = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<int64_t> one{1};
      Init(Options()).AllReduce(one);
      sum += one[0];
      Destroy();
    }
    return std::to_string(sum);
  });
  EXPECT_THAT(told, Each("300"));
}

TEST(NegativeStart, N28_AnotherNumberOfInterfaces) {
  auto told = OnRanks(2, [](int r) {
    setenv("GLOO_SOCKET_IFNAME", r == 0 ? "lo" : "lo,lo", 1);
    return ErrorOf([] { Init({.timeout = std::chrono::seconds(60), .backend = "gloo"}); });
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistError: Init: "),
                               EndsWith("GLOO_SOCKET_IFNAME names different numbers of interfaces: "
                                        "1 on rank 0, 2 on rank 1: want the same number on all "
                                        "ranks"))));
}

TEST(NegativeStart, N28_AnInterfaceThatOneRankLacks) {
  auto told = OnRanks(3, [](int r) {
    setenv("GLOO_SOCKET_IFNAME", r == 1 ? "none0" : "lo", 1);
    InitOptions options{.timeout = std::chrono::seconds(60), .backend = "gloo"};
    return ErrorOf([&] { Init(options); }, kSoon);
  });
  std::string reason = "listen at interface none0 (GLOO_SOCKET_IFNAME): No such device";
  for (int r = 0; r < 3; ++r) {
    std::string place = "join the world process group, rank " + std::to_string(r) + " of 3: ";
    EXPECT_EQ(told[static_cast<size_t>(r)],
              "DistBackendError: Init: " + place +
                  "connect to the other ranks: " + (r == 1 ? "" : "rank 1: ") + reason);
  }
}

// Each rank waits for the next: rank 0 for 1, 1 for 2, 2 for 0.
TEST_P(NegativeStartTest, N29_LocalGroupsInACircle) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    const std::vector<int> first[] = {{0, 1}, {1, 2}, {0, 2}};
    std::string text = ErrorOf([&] {
      NewGroup({.ranks = first[static_cast<size_t>(world.global_rank())],
                .timeout = kShort,
                .use_local_synchronization = true});
    });
    world.MonitoredBarrier();
    return text;
  });
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistTimeoutError: NewGroup: "),
                               EndsWith("missing: rank " + std::to_string((r + 1) % 3))));
  }
}

TEST_P(NegativeStartTest, AWrongBackendOnOneRank) {
  auto told = OnRanks(3, [](int r) {
    if (r == 1) setenv("RANKRUN_BACKEND", "smh", 1);
    return ErrorOf([] { Init(Options()); }, kSoon);
  });
  const std::string reason =
      "RANKRUN_BACKEND: backend is \"smh\": want auto, shm, tcp, hierarchical, gloo, a registered "
      "one, or a plug-in "
      "librankrun_smh.so "
      "in ";
  EXPECT_THAT(told[1],
              StartsWith("DistError: Init: join the world process group, rank 1 of 3: " + reason));
  for (size_t r : {0U, 2U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistError: Init: "),
                               HasSubstr("wait for all ranks: rank 1: " + reason)));
  }
}

TEST_P(NegativeStartTest, DifferentWorldSizes) {
  auto told = OnRanks(2, [](int r) {
    setenv("WORLD_SIZE", r == 0 ? "2" : "3", 1);
    return ErrorOf([] { Init(Options()); }, kSoon);
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Init: "),
                               AnyOf(EndsWith(": the world size is 2 on rank 0, 3 on rank 1"),
                                     EndsWith(": the world size is 3 on rank 1, 2 on rank 0")))));
}

TEST_P(NegativeStartTest, AnotherTimeoutWhereRankZeroServesTheStore) {
  uint16_t port = 0;
  {
    ServerProcess free;
    port = free.port();
  }
  auto told = OnRanks(4, [&](int r) {
    InitOptions options = Options(r == 1 ? std::chrono::seconds(90) : std::chrono::seconds(60));
    options.init_method = "tcp://127.0.0.1:" + std::to_string(port);
    options.rank = r;
    options.world_size = 4;
    return ErrorOf([&] { Init(options); }, kSoon);
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Init: "),
                               HasSubstr("timeout 60000 ms; rank 1 wants"))));
}

}  // namespace
}  // namespace rankrun::comm
