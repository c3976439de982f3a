#include "base/status/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "base/status/status_page.h"
#include "base/status/ticks.h"

namespace rankrun {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr ActivityRecord kAllReduce{.kind = 1, .dtype = 0, .op = 0, .number = 12, .count = 16};

struct ActivityTest : testing::Test {
  ActivityTest() : page(*StatusPage::Create()) {}
  std::vector<GroupActivity> Groups() const { return ReadGroups(page); }

  StatusPage page;
};

TEST_F(ActivityTest, ANewPageShowsNothing) {
  EXPECT_THAT(Groups(), IsEmpty());
  EXPECT_EQ(ReadActivity(page).what, "");
}

TEST_F(ActivityTest, AGroupInNoOperationShowsNothing) {
  Activity activity(&page, "world", 4);
  ASSERT_EQ(Groups().size(), 1U);
  EXPECT_EQ(Groups()[0].name, "world");
  EXPECT_EQ(Groups()[0].size, 4);
  EXPECT_FALSE(Groups()[0].is_under_way);
  EXPECT_EQ(ReadActivity(page).what, "");
}

TEST_F(ActivityTest, AnOperationIsShownWhileItIsUnderWay) {
  Activity activity(&page, "world", 4);
  activity.Enter({.kind = 3,
                  .dtype = 1,
                  .op = 2,
                  .part_of = ProgramCall::kJoin,
                  .root = 7,
                  .number = 1ULL << 40,
                  .count = 1ULL << 50,
                  .fingerprint = ~0ULL});
  GroupActivity group = Groups().at(0);
  EXPECT_TRUE(group.is_under_way);
  EXPECT_EQ(group.last.kind, 3);
  EXPECT_EQ(group.last.dtype, 1);
  EXPECT_EQ(group.last.op, 2);
  EXPECT_EQ(group.last.part_of, ProgramCall::kJoin);
  EXPECT_EQ(group.last.root, 7);
  EXPECT_EQ(group.last.number, 1ULL << 40);
  EXPECT_EQ(group.last.count, 1ULL << 50);
  EXPECT_EQ(group.last.fingerprint, ~0ULL);
  EXPECT_EQ(group.completed, 0U);
  activity.Complete();
  EXPECT_FALSE(Groups().at(0).is_under_way);
  EXPECT_EQ(Groups().at(0).completed, 1ULL << 40);
}

TEST_F(ActivityTest, AnOperationInTheBackgroundIsAwaitedWhileAThreadWaits) {
  Activity activity(&page, "world", 4);
  activity.Enter(kAllReduce);
  EXPECT_TRUE(Groups().at(0).is_awaited());
  activity.Enter(kAllReduce, Activity::Recording::kYes, Activity::Caller::kGoesOn);
  const auto has_lasted = [&] { return Groups().at(0).since_entered > Duration::zero(); };
  while (!has_lasted()) std::this_thread::yield();
  EXPECT_TRUE(Groups().at(0).is_under_way);
  EXPECT_FALSE(Groups().at(0).is_awaited());
  EXPECT_EQ(Groups().at(0).awaited_for(), Duration::zero());
  activity.ShowWaiting(true);
  while (!Groups().at(0).is_awaited()) std::this_thread::yield();
  EXPECT_LT(Groups().at(0).awaited_for(), Groups().at(0).since_entered);
  activity.ShowWaiting(false);
  EXPECT_FALSE(Groups().at(0).is_awaited());
  activity.Enter(kAllReduce);
  EXPECT_TRUE(Groups().at(0).is_awaited());
  EXPECT_EQ(Groups().at(0).last.op, kAllReduce.op);
}

TEST_F(ActivityTest, UseOfTheLibraryIsShownWhileItLasts) {
  EXPECT_FALSE(ReadLibraryUse(page));
  {
    const LibraryUse one(&page);
    const LibraryUse none(nullptr);
    EXPECT_TRUE(ReadLibraryUse(page));
  }
  EXPECT_FALSE(ReadLibraryUse(page));
}

TEST_F(ActivityTest, TextNamesOperationAndGroup) {
  Activity activity(&page, "world", 4);
  auto said = [&](const ActivityRecord& record) {
    activity.Enter(record);
    return ReadActivity(page).what;
  };
  EXPECT_EQ(said(kAllReduce), "in AllReduce #12 (16 x float32, sum) of world");
  EXPECT_THAT(said({.kind = 3, .dtype = 1, .root = 2, .number = 1, .count = 3}),
              HasSubstr("in Broadcast #1 (3 x float64 from rank 2) of world"));
  EXPECT_THAT(said({.kind = 2, .dtype = 4, .op = 4, .root = 2, .number = 1, .count = 3}),
              HasSubstr("in Reduce #1 (3 x int8, max to rank 2) of"));
  EXPECT_THAT(said({.kind = 9, .number = 7}), HasSubstr("in Barrier #7 of"));
  EXPECT_THAT(said({.kind = 11, .dtype = 8, .root = 1, .count = 5}),
              HasSubstr("in Recv (5 x uint8 from rank 1) of"));
  EXPECT_THAT(said({.kind = 200, .dtype = 99, .number = 1}),
              HasSubstr("in unknown #1 (0 x unknown) of"));
}

TEST_F(ActivityTest, TimeCountsFromTheEntry) {
  Activity activity(&page, "world", 4);
  activity.Enter(kAllReduce);
  TimePoint entered = MonotonicClock().Now();
  while (MonotonicClock().Now() - entered < std::chrono::milliseconds(50))
    std::this_thread::yield();
  GroupActivity group = Groups().at(0);
  Duration passed = MonotonicClock().Now() - entered;
  EXPECT_GE(group.since_entered, std::chrono::milliseconds(49));
  EXPECT_LE(group.since_entered, passed + std::chrono::milliseconds(1));
}

TEST_F(ActivityTest, TimesThatCannotBeAreCut) {
  TimePoint first{};
  TickClock clock{.first_ticks = 1000,
                  .first_time = first,
                  .now_ticks = 2000,
                  .now_time = first + std::chrono::seconds(1)};
  EXPECT_EQ(clock.Since(1500), std::chrono::milliseconds(500));
  EXPECT_EQ(clock.Since(0), std::chrono::seconds(1));
  EXPECT_EQ(clock.Since(~0ULL), Duration(0));
}

TEST_F(ActivityTest, OfSeveralGroupsTheLastEnteredIsShown) {
  Activity world(&page, "world", 4);
  Activity pair(&page, "pair", 2);
  pair.Enter(kAllReduce);
  world.Enter(kAllReduce);
  EXPECT_THAT(ReadActivity(page).what, HasSubstr("of world"));
  world.Complete();
  EXPECT_THAT(ReadActivity(page).what, HasSubstr("of pair"));
}

TEST_F(ActivityTest, PlacesAreFreedAndGivenAgain) {
  for (int i = 0; i < 1000; ++i) {
    Activity activity(&page, "group " + std::to_string(i), i);
    activity.Enter(kAllReduce);
  }
  EXPECT_THAT(Groups(), IsEmpty());
  Activity activity(&page, "new", 1);
  ASSERT_EQ(Groups().size(), 1U);
  EXPECT_EQ(Groups()[0].name, "new");
  EXPECT_FALSE(Groups()[0].is_under_way);
  EXPECT_EQ(Groups()[0].completed, 0U);
}

TEST_F(ActivityTest, WithoutAPlaceOrAPageNothingHappens) {
  std::vector<std::unique_ptr<Activity>> all;
  for (size_t i = 0; i < kGroupSlots + 2; ++i) {
    all.push_back(std::make_unique<Activity>(&page, "group", 1));
    all.back()->Enter(kAllReduce);
  }
  EXPECT_EQ(Groups().size(), kGroupSlots);
  Activity none(nullptr, "group", 1);
  none.Enter(kAllReduce);
  none.Complete();
}

TEST_F(ActivityTest, LongNamesAreCutBetweenCharacters) {
  Activity activity(&page, std::string(kGroupNameBytes - 1, 'x') + "ä", 1);
  EXPECT_EQ(Groups().at(0).name, std::string(kGroupNameBytes - 1, 'x'));
}

TEST_F(ActivityTest, OtherWaitsAreShown) {
  {
    Awaited key(&page, "key init/3 of the store");
    Awaited second(&page, "something else");
    EXPECT_EQ(ReadActivity(page).what, "waiting for key init/3 of the store");
  }
  EXPECT_EQ(ReadActivity(page).what, "");
  Awaited again(&page, "rank 3");
  EXPECT_EQ(ReadActivity(page).what, "waiting for rank 3");
}

TEST_F(ActivityTest, AWriterThatDiedInTheMiddleIsLeftOut) {
  Activity activity(&page, "world", 4);
  activity.Enter(kAllReduce);
  page.activities().groups[0].sequence += 1;
  EXPECT_THAT(Groups(), IsEmpty());
  EXPECT_EQ(ReadActivity(page).what, "");
  activity.Enter(kAllReduce);
  EXPECT_THAT(ReadActivity(page).what, HasSubstr("in AllReduce #12"));
}

TEST_F(ActivityTest, RubbishOnThePageDoesNoHarm) {
  std::memset(static_cast<void*>(&page.activities()), 0xfe, sizeof(ActivityTable));
  for (const GroupActivity& group : Groups()) EXPECT_LE(group.name.size(), 4 * kGroupNameBytes);
  EXPECT_LE(ReadActivity(page).what.size(), 1000u);
}

// A reader sees fields of one record only, however often they change.
TEST_F(ActivityTest, AReaderSeesOneRecordAtATime) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    Activity activity(&page, "world", 4);
    for (uint64_t i = 1; !done; ++i) {
      activity.Enter({.kind = 1, .number = i, .count = i, .fingerprint = i});
      activity.Complete();
    }
  });
  int seen = 0;
  uint64_t last = 0;
  TimePoint end = MonotonicClock().Now() + std::chrono::seconds(30);
  while (seen < 2000 && MonotonicClock().Now() < end) {
    for (const GroupActivity& group : Groups()) {
      ++seen;
      EXPECT_EQ(group.last.count, group.last.number);
      EXPECT_EQ(group.last.fingerprint, group.last.number);
      EXPECT_GE(group.last.number, last);
      EXPECT_LE(group.completed, group.last.number);
      last = group.last.number;
    }
  }
  done = true;
  writer.join();
  EXPECT_GT(seen, 0);
}

TEST_F(ActivityTest, AnyNumberOfARankMayBeOnThePage) {
  Awaited awaited(&page, "a message", 3);
  for (uint32_t number : {0U, 1U, 0x8000'0000U, 0xFFFF'FFFFU}) {
    page.activities().awaited.rank_plus_1 = number;
    EXPECT_EQ(static_cast<uint32_t>(ReadAwaited(page).global_rank), number - 1);
  }
}

TEST_F(ActivityTest, ThePageOutlivesAKilledWriter) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Activity activity(&page, "world", 2);
    activity.Enter(kAllReduce);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(ReadActivity(page).what, HasSubstr("in AllReduce #12 (16 x float32, sum) of world"));
}

}  // namespace
}  // namespace rankrun
