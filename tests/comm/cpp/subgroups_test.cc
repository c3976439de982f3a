// Groups made from the ranks of a group: SplitGroup and ShrinkGroup.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include <rankrun/subgroups.h>

#include "base/status/status_page.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Returns "1: 3 of 3" on group rank 1 of a group whose all-reduce adds 3 ranks.
std::string PlaceAndSum(ProcessGroup& group) {
  if (!group.is_member()) return "no member";
  return std::to_string(group.group_rank()) + ": " + SumOf(group);
}

struct SplitGroupTest : testing::TestWithParam<const char*> {};

TEST_P(SplitGroupTest, MakesOneGroupPerListInItsOrder) {
  auto texts = InWorld(4, GetParam(), [](ProcessGroup& world) {
    return PlaceAndSum(SplitGroup(world, {{0, 2, 1}, {3}}, {.description = "part"}));
  });
  EXPECT_THAT(texts, ElementsAre("0: 3 of 3", "2: 3 of 3", "1: 3 of 3", "0: 1 of 1"));
}

TEST_P(SplitGroupTest, CountsTheRanksOfItsParent) {
  auto texts = InWorld(4, GetParam(), [](ProcessGroup& world) {
    ProcessGroup& parent = SplitGroup(world, {{3, 2, 1}});
    if (!parent.is_member()) return PlaceAndSum(parent);
    ProcessGroup& part = SplitGroup(parent, {{2, 0}});
    if (part.is_member() && part.global_ranks() != std::vector<int>{1, 3}) return std::string("?");
    return PlaceAndSum(part);
  });
  EXPECT_THAT(texts, ElementsAre("no member", "0: 2 of 2", "no member", "1: 2 of 2"));
}

INSTANTIATE_TEST_SUITE_P(Backends, SplitGroupTest,
                         testing::Values("shm", "tcp", "gloo", "hierarchical"), NameOfBackend);

TEST(SplitGroupErrorTest, DifferentListsAreListedAndTheNextCallWorks) {
  auto texts = InWorld(3, "shm", [](ProcessGroup& world) {
    const int last = world.group_rank() == 1 ? 1 : 2;
    std::string error = ErrorOf([&] { SplitGroup(world, {{0, last}}); });
    return error + " / " + PlaceAndSum(SplitGroup(world, {{0, 1, 2}}));
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, AllOf(StartsWith("DistMismatchError: SplitGroup of the world process group"),
                            HasSubstr(" wants groups of ranks 0,2, backend shm"),
                            HasSubstr("rank 1 wants groups of ranks 0,1, backend shm"),
                            HasSubstr(": 3 of 3")));
  }
}

TEST(SplitGroupErrorTest, ABadListIsAnErrorOnAllRanks) {
  auto texts = InWorld(3, "shm", [](ProcessGroup& world) {
    std::vector<std::vector<int>> splits{{0, 1}, {2}};
    if (world.group_rank() == 1) splits[1] = {1};
    return ErrorOf([&] { SplitGroup(world, splits); });
  });
  EXPECT_EQ(texts[1],
            "DistError: SplitGroup of the world process group, rank 1 of 3: rank 1 is given twice");
  EXPECT_EQ(texts[2],
            "DistError: SplitGroup of the world process group, rank 2 of 3: rank 1 refused it: "
            "rank 1 is given twice");
}

TEST(SplitGroupErrorTest, ABadTimeoutIsAnErrorOnAllRanks) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Timeout timeout = milliseconds(world.group_rank() == 1 ? 0 : 60'000);
    return ErrorOf([&] { SplitGroup(world, {{0, 1}}, {.timeout = timeout}); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("timeout is 0 ms: want at least 1 ms")));
}

TEST(SplitGroupErrorTest, MissingRanksAreNamedAlsoToThemselves) {
  auto texts = InWorld(3, "shm", [](ProcessGroup& world) {
    world.MonitoredBarrier();
    auto split = [&] {
      return ErrorOf([&] { SplitGroup(world, {{0, 1}}, {.timeout = seconds(1)}); });
    };
    std::string error;
    if (world.group_rank() < 2) error = split();
    world.MonitoredBarrier();
    if (world.group_rank() == 2) error = split();  // late: fails as the others
    return error + " / " + PlaceAndSum(SplitGroup(world, {{2, 1, 0}}));
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, AllOf(StartsWith("DistTimeoutError: SplitGroup of the world"),
                            HasSubstr("missing: rank 2"), HasSubstr(": 3 of 3")));
  }
}

TEST(SplitGroupErrorTest, CallersAreMembersOfTheParent) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    ProcessGroup& first = SplitGroup(world, {{0}}, {.description = "first"});
    if (first.is_member()) return std::string("member");
    return ErrorOf([&] { SplitGroup(first, {{0}}); });
  });
  EXPECT_EQ(texts[1],
            "DistError: SplitGroup of process group \"first\": rank 1 is no member of it");
}

struct ShrinkGroupTest : testing::TestWithParam<const char*> {};

TEST_P(ShrinkGroupTest, SurvivorsOfADeathGoOn) {
  auto texts = OnRanks(4, [](int rank) {
    SetHostFor(GetParam(), rank);
    ProcessGroup& world = Init({.timeout = seconds(60), .backend = GetParam()});
    SumOf(world);
    world.MonitoredBarrier();  // a death does not end this barrier
    if (rank == 1) raise(SIGKILL);
    std::string error = ErrorOf([&] { SumOf(world); });
    if (error.find("rank 1") == std::string::npos) return error;
    ProcessGroup& rest = ShrinkGroup(world, {1});
    std::string text = PlaceAndSum(rest);
    ProcessGroup& ends = SplitGroup(rest, {{0, 2}, {1}});
    ProcessGroup& again =
        NewGroup({.ranks = {0, 2, 3}, .description = "again", .use_local_synchronization = true});
    text += ", " + PlaceAndSum(ends) + ", " + PlaceAndSum(again);
    Destroy();
    return text;
  });
  EXPECT_THAT(texts,
              ElementsAre("0: 3 of 3, 0: 2 of 2, 0: 3 of 3", "", "1: 3 of 3, 0: 1 of 1, 1: 3 of 3",
                          "2: 3 of 3, 1: 2 of 2, 2: 3 of 3"));
}

TEST_P(ShrinkGroupTest, AShrunkGroupCanShrink) {
  auto texts = OnRanks(4, [](int rank) {
    SetHostFor(GetParam(), rank);
    ProcessGroup* group = &Init({.timeout = seconds(60), .backend = GetParam()});
    for (int victim : {3, 1}) {
      SumOf(*group);
      group->MonitoredBarrier();
      if (rank == victim) raise(SIGKILL);
      std::string error = ErrorOf([&] { SumOf(*group); });
      if (error.find("rank " + std::to_string(victim)) == std::string::npos) return error;
      group = &ShrinkGroup(*group, {group->GroupRankOf(GlobalRank{victim})});
    }
    return PlaceAndSum(*group);
  });
  EXPECT_THAT(texts, ElementsAre("0: 2 of 2", "", "1: 2 of 2", ""));
}

TEST_P(ShrinkGroupTest, MembersThatWaitInTheParentGetAnError) {
  auto texts = InWorld(4, GetParam(), [](ProcessGroup& world) {
    const int rank = world.group_rank();
    std::string error = "no call";
    if (rank == 0) error = ErrorOf([&] { world.MonitoredBarrier(); });
    if (rank > 1) error = ErrorOf([&] { SumOf(world); });
    return rank == 3 ? error : error + " / " + PlaceAndSum(ShrinkGroup(world, {3}));
  });
  EXPECT_EQ(texts[1], "no call / 1: 3 of 3");
  EXPECT_THAT(texts[0], AllOf(HasSubstr("ShrinkGroup"), EndsWith(" / 0: 3 of 3")));
  EXPECT_THAT(texts[2], AllOf(HasSubstr("ShrinkGroup"), EndsWith(" / 2: 3 of 3")));
  EXPECT_THAT(texts[3], HasSubstr("ShrinkGroup"));
}

INSTANTIATE_TEST_SUITE_P(Backends, ShrinkGroupTest,
                         testing::Values("shm", "tcp", "gloo", "hierarchical"), NameOfBackend);

TEST(ShrinkGroupErrorTest, DifferentRanksToExcludeAreListed) {
  auto texts = InWorld(4, "shm", [](ProcessGroup& world) {
    const int rank = world.group_rank();
    if (rank == 3) return std::string("excluded");
    std::vector<int> excluded{3};
    if (rank == 1) excluded.push_back(2);
    return ErrorOf([&] { ShrinkGroup(world, excluded); });
  });
  texts.pop_back();
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistMismatchError: ShrinkGroup of the world"),
                                HasSubstr(" wants to exclude ranks 3,"),
                                HasSubstr("rank 1 wants to exclude ranks 2,3"))));
}

TEST(ShrinkGroupErrorTest, TwoHalvesCannotBothGoOn) {
  auto texts = InWorld(4, "shm", [](ProcessGroup& world) {
    const bool first = world.group_rank() < 2;
    std::string text;
    std::string error = ErrorOf([&] {
      text = SumOf(ShrinkGroup(world, first ? std::vector<int>{2, 3} : std::vector<int>{0, 1}));
    });
    return error == "no error" ? text : error;
  });
  const auto going_on = std::count(texts.begin(), texts.end(), "2 of 2");
  EXPECT_TRUE(going_on == 0 || going_on == 2);
  EXPECT_EQ(texts[0] == "2 of 2", texts[1] == "2 of 2");
  EXPECT_THAT(texts, Each(AnyOf("2 of 2", StartsWith("DistMismatchError: ShrinkGroup"))));
}

TEST(ShrinkGroupErrorTest, ABadArgumentLeavesTheParentAsItIs) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    std::string text;
    for (std::vector<int> excluded : {std::vector<int>{}, {2}, {world.group_rank()}}) {
      text += ErrorOf([&] { ShrinkGroup(world, excluded); }) + "\n";
    }
    text += ErrorOf(
        [&] { ShrinkGroup(world, {1 - world.group_rank()}, {.timeout = milliseconds(0)}); });
    return text + "\n" + SumOf(world);
  });
  EXPECT_EQ(texts[0],
            "DistError: ShrinkGroup of the world process group, rank 0 of 2: no rank is excluded: "
            "want at least one\n"
            "DistError: ShrinkGroup of the world process group, rank 0 of 2: rank 2 is not in the "
            "group: want 0..1\n"
            "DistError: ShrinkGroup of the world process group, rank 0 of 2: it excludes this "
            "rank, 0: want a call on the others\n"
            "DistError: ShrinkGroup of the world process group, rank 0 of 2: timeout is 0 ms: want "
            "at least 1 ms\n"
            "2 of 2");
}

// Joins a world whose store rank 0 serves at `port`.
ProcessGroup& InitServedByRankZero(int rank, int world_size, int port) {
  return Init({.timeout = seconds(60),
               .init_method = "tcp://127.0.0.1:" + std::to_string(port),
               .rank = rank,
               .world_size = world_size});
}

TEST(ShrinkGroupErrorTest, TheRankThatServesTheStoreMustRemain) {
  const int port = test::FreePort();
  auto texts = OnRanks(2, [&](int rank) {
    ProcessGroup& world = InitServedByRankZero(rank, 2, port);
    std::string text = rank == 1 ? ErrorOf([&] { ShrinkGroup(world, {0}); }) : "excluded";
    Destroy();
    return text;
  });
  EXPECT_EQ(texts[1],
            "DistError: ShrinkGroup of the world process group, rank 1 of 2: rank 0 serves the "
            "store in which the others meet: want a store that outlives it: that of an agent, or a "
            "file");
}

TEST(ShrinkGroupErrorTest, AnAgentThatReportsADeathEndsAll) {
  auto texts = OnRanks(2, [](int rank) {
    auto page = StatusPage::Create();
    UsePage(*page);
    ProcessGroup& world = Init({.timeout = seconds(60)});
    world.MonitoredBarrier();
    if (rank == 1) raise(SIGKILL);
    page->PublishPeerDeath("rank 1 was killed by SIGKILL");
    return ErrorOf([&] { ShrinkGroup(world, {1}); });
  });
  EXPECT_EQ(texts[0],
            "DistNetworkError: ShrinkGroup of the world process group, rank 0 of 2: rank 1 was "
            "killed by SIGKILL, and the agent ends all workers: want rankrun --max-restarts");
}

// Destroy would wait 5 s for the goodbye of an excluded rank.
TEST(ShrinkGroupTimingTest, TheServerDoesNotAwaitExcludedRanks) {
  const int port = test::FreePort();
  auto texts = OnRanks(3, [&](int rank) {
    ProcessGroup& world = InitServedByRankZero(rank, 3, port);
    world.MonitoredBarrier();
    if (rank == 2) raise(SIGKILL);
    std::string text = SumOf(ShrinkGroup(world, {2}));
    return text + ErrorOf([] { Destroy(); }, milliseconds(3'000));
  });
  EXPECT_THAT(texts, ElementsAre("2 of 2no error", "2 of 2no error", ""));
}

}  // namespace
}  // namespace rankrun::comm
