#include "base/status/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/status/activity.h"
#include "base/status/flight_reader.h"
#include "base/status/status_page.h"

namespace rankrun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

ActivityRecord AllReduce(uint64_t number) {
  return {.kind = 1, .dtype = 0, .op = 3, .number = number, .count = 16, .fingerprint = 99};
}
constexpr ActivityRecord kSend{.kind = 10, .dtype = 8, .root = 5, .count = 7};
constexpr ActivityRecord kRecvFromAny{.kind = 11, .dtype = 8, .root = -1, .count = 7};

struct FlightRecorderTest : testing::Test {
  FlightRecorderTest() : page(*StatusPage::Create()) {}
  std::vector<FlightHistory> Histories() const { return ReadFlightHistories(page); }
  // Returns the operations of the only group.
  std::vector<FlightOperation> Operations() const {
    std::vector<FlightHistory> histories = Histories();
    EXPECT_THAT(histories, SizeIs(1));
    return histories.empty() ? std::vector<FlightOperation>() : histories[0].operations;
  }
  FlightRing& Collectives() const { return page.flight_groups()[0].collectives; }

  StatusPage page;
};

void Call(Activity& activity, uint64_t number, bool succeeds = true) {
  activity.Enter(AllReduce(number));
  activity.Complete(succeeds);
}

// Returns "9 | 10 under way | 11 failed": the numbers of the operations, and states.
std::string InWords(const std::vector<FlightOperation>& operations) {
  std::string text;
  for (const FlightOperation& operation : operations) {
    if (!text.empty()) text += " | ";
    text += std::to_string(operation.what.number);
    if (operation.state == FlightState::kUnderWay) text += " under way";
    if (operation.state == FlightState::kFailed) text += " failed";
  }
  return text;
}

TEST_F(FlightRecorderTest, AGroupWithoutOperationsHasNoHistory) {
  EXPECT_THAT(Histories(), IsEmpty());
  Activity activity(&page, "world", 4);
  EXPECT_THAT(Histories(), IsEmpty());
}

TEST_F(FlightRecorderTest, KeepsEachOperationWithItsStateAndTimes) {
  Activity activity(&page, "world", 4);
  const uint64_t before = Ticks();
  Call(activity, 1);
  Call(activity, 2, false);
  activity.Enter(AllReduce(3));
  EXPECT_EQ(InWords(Operations()), "1 | 2 failed | 3 under way");
  const FlightHistory history = Histories().at(0);
  EXPECT_EQ(history.group, "world");
  EXPECT_EQ(history.size, 4);
  EXPECT_TRUE(history.is_live);
  EXPECT_EQ(history.begun, 3U);
  const FlightOperation& first = history.operations[0];
  EXPECT_EQ(first.what.kind, 1);
  EXPECT_EQ(first.what.op, 3);
  EXPECT_EQ(first.what.root, -1);
  EXPECT_EQ(first.what.count, 16U);
  EXPECT_EQ(first.what.fingerprint, 99U);
  EXPECT_GE(first.begin, before);
  EXPECT_GE(first.end, first.begin);
  EXPECT_LE(first.end, Ticks());
  EXPECT_EQ(history.operations[2].end, 0U);
}

TEST_F(FlightRecorderTest, KeepsTheLastTwoThousandCollectives) {
  Activity activity(&page, "world", 4);
  constexpr uint64_t kCalls = 3 * kFlightRecords + 7;
  for (uint64_t i = 1; i <= kCalls; ++i) Call(activity, i);
  activity.Enter(AllReduce(kCalls + 1));
  const std::vector<FlightOperation> operations = Operations();
  ASSERT_THAT(operations, SizeIs(2000));
  for (size_t i = 0; i < operations.size(); ++i) {
    EXPECT_EQ(operations[i].what.number, kCalls + 2 - kFlightRecords + i);
  }
  EXPECT_EQ(operations.back().state, FlightState::kUnderWay);
  EXPECT_EQ(Histories()[0].begun, kCalls + 1);
}

TEST_F(FlightRecorderTest, MessagesEndInAnyOrderAndLeaveTheCollectives) {
  Activity activity(&page, "world", 4);
  Call(activity, 1);
  activity.recorder().Begin(kSend, 3);
  const FlightEntry second = activity.recorder().Begin(kRecvFromAny, 4);
  const FlightEntry third = activity.recorder().Begin(kSend, 5);
  FlightRecorder::End(third, false);
  FlightRecorder::End(second, true, 2);
  std::vector<FlightOperation> operations = Operations();
  ASSERT_THAT(operations, SizeIs(4));
  EXPECT_EQ(InWords(operations), "1 | 0 under way | 0 | 0 failed");
  EXPECT_EQ(operations[1].what.root, 5);
  EXPECT_EQ(operations[1].tag, 3U);
  EXPECT_EQ(operations[2].what.kind, 11);
  EXPECT_EQ(operations[2].what.dtype, 8);
  EXPECT_EQ(operations[2].what.root, 2);
  for (size_t i = 0; i < 2 * kFlightRecords; ++i) {
    FlightRecorder::End(activity.recorder().Begin(kSend, 6), true);
  }
  operations = Operations();
  ASSERT_THAT(operations, SizeIs(1 + kFlightRecords));
  EXPECT_EQ(operations[0].what.number, 1U);
  EXPECT_EQ(operations[1].tag, 6U);
}

TEST_F(FlightRecorderTest, AMessageThatWasOverwrittenEndsNoOther) {
  Activity activity(&page, "world", 4);
  const FlightEntry old = activity.recorder().Begin(kSend, 3);
  for (size_t i = 0; i < kFlightRecords; ++i) activity.recorder().Begin(kRecvFromAny, 4);
  FlightRecorder::End(old, true, 1);
  for (const FlightOperation& operation : Operations()) {
    EXPECT_EQ(operation.state, FlightState::kUnderWay);
    EXPECT_EQ(operation.what.root, -1);
  }
}

TEST_F(FlightRecorderTest, TwoThousandMessagesOfManyThreadsAreKept) {
  Activity activity(&page, "world", 4);
  constexpr uint64_t kThreads = 4;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kFlightRecords / kThreads; ++i) {
        FlightRecorder::End(activity.recorder().Begin(kSend, thread), true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> of_thread(kThreads);
  for (const FlightOperation& operation : Operations()) {
    EXPECT_EQ(operation.state, FlightState::kSucceeded);
    of_thread.at(operation.tag) += 1;
  }
  EXPECT_THAT(of_thread, ElementsAre(500, 500, 500, 500));
}

TEST_F(FlightRecorderTest, UnrecordedOperationsAreOnThePageOnly) {
  Activity activity(&page, "world", 4);
  Call(activity, 1);
  activity.Enter(AllReduce(2), Activity::Recording::kNo);
  EXPECT_EQ(ReadGroups(page).at(0).last.number, 2U);
  activity.Complete();
  EXPECT_EQ(InWords(Operations()), "1");
}

TEST_F(FlightRecorderTest, ADestroyedGroupIsKeptUntilItsPlaceIsGivenAgain) {
  {
    Activity activity(&page, "old", 4);
    Call(activity, 1);
    activity.Enter(AllReduce(2));
    activity.recorder().Begin(kSend, 3);
  }
  EXPECT_EQ(InWords(Operations()), "1 | 2 failed | 0 under way");
  EXPECT_EQ(Histories().at(0).group, "old");
  EXPECT_FALSE(Histories().at(0).is_live);
  Activity activity(&page, "new", 2);
  EXPECT_THAT(Histories(), IsEmpty());
  Call(activity, 1);
  EXPECT_EQ(InWords(Operations()), "1");
}

TEST_F(FlightRecorderTest, GroupsBeyondTheFirst64AreNotRecorded) {
  std::vector<std::unique_ptr<Activity>> all;
  for (size_t i = 0; i < kFlightGroups + 2; ++i) {
    all.push_back(std::make_unique<Activity>(&page, "group", 1));
    Call(*all.back(), i + 1);
    FlightRecorder::End(all.back()->recorder().Begin(kSend, 0), true);
  }
  const std::vector<FlightHistory> histories = Histories();
  ASSERT_THAT(histories, SizeIs(64));
  for (size_t i = 0; i < histories.size(); ++i) {
    EXPECT_EQ(histories[i].operations.at(0).what.number, i + 1);
  }
}

TEST_F(FlightRecorderTest, ARecordWhoseWriterDiedInTheMiddleIsLeftOut) {
  Activity activity(&page, "world", 4);
  for (uint64_t i = 1; i <= 3; ++i) Call(activity, i);
  Collectives().records[1].stamp = 0;
  EXPECT_EQ(InWords(Operations()), "1 | 3");
  Collectives().begun += 1;  // it died before it wrote the fourth
  EXPECT_EQ(InWords(Operations()), "1 | 3");
}

TEST_F(FlightRecorderTest, RubbishInTheMemoryDoesNoHarm) {
  Activity activity(&page, "world", 4);
  Call(activity, 1);
  FlightGroup* groups = page.flight_groups();
  for (int byte : {0xfe, 0xff, 0x01, 0x00}) {
    std::memset(static_cast<void*>(groups), byte, sizeof(FlightGroup));
    std::memset(page.activities().groups[0].name, byte, kGroupNameBytes + 1);
    for (const FlightHistory& history : Histories()) {
      EXPECT_LE(history.group.size(), 4 * (kGroupNameBytes + 1));
      EXPECT_LE(history.operations.size(), 2 * kFlightRecords);
    }
  }
  page.activities().groups_end = ~0U;
  EXPECT_THAT(Histories(), IsEmpty());
  // Valid numbers at the wrong place, and a state that does not exist.
  Collectives().begun = ~0ULL;
  Collectives().records[0].stamp = (uint64_t{kFlightRecords} + 1) << 2 | 3;
  Collectives().records[1].stamp = 1 << 2 | 1;
  Collectives().records[2].stamp = 3 << 2;
  Collectives().records[3].numbers = ~0ULL;
  Collectives().records[3].stamp = 4 << 2 | 1;
  const std::vector<FlightOperation> operations = Operations();
  ASSERT_THAT(operations, SizeIs(2));
  EXPECT_EQ(DescribeOperation(operations[1].what), "unknown: unknown (0 x unknown)");
}

// A reader sees fields of one record only, however often they change.
TEST_F(FlightRecorderTest, AReaderSeesOneRecordAtATime) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    Activity activity(&page, "world", 4);
    for (uint64_t i = 1; !done; ++i) {
      activity.Enter({.kind = 1, .number = i, .count = i, .fingerprint = i});
      activity.Complete(i % 2 == 0);
    }
  });
  TimePoint end = MonotonicClock().Now() + std::chrono::seconds(30);
  size_t seen = 0;
  while (seen < 50 * kFlightRecords && MonotonicClock().Now() < end) {
    for (const FlightHistory& history : Histories()) {
      seen += history.operations.size();
      for (const FlightOperation& operation : history.operations) {
        ASSERT_EQ(operation.what.count, operation.what.number);
        ASSERT_EQ(operation.what.fingerprint, operation.what.number);
        if (operation.state == FlightState::kUnderWay) continue;
        ASSERT_EQ(operation.state == FlightState::kSucceeded, operation.what.number % 2 == 0);
        ASSERT_GE(operation.end, operation.begin);
      }
    }
  }
  done = true;
  writer.join();
  EXPECT_GT(seen, 0U);
}

TEST_F(FlightRecorderTest, ItOutlivesAKilledWriter) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Activity activity(&page, "world", 2);
    Call(activity, 1);
    activity.Enter(AllReduce(2));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(InWords(Operations()), "1 | 2 under way");
  EXPECT_TRUE(Histories().at(0).is_live);
}

TEST_F(FlightRecorderTest, AForkedProcessWritesOnlyForItsOwnGroups) {
  auto activity = std::make_unique<Activity>(&page, "of the parent", 2);
  activity->Enter(AllReduce(1));
  const FlightEntry send = activity->recorder().Begin(kSend, 3);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Activity own(&page, "of the child", 1);
    Call(own, 7);
    FlightRecorder::End(send, true);
    FlightRecorder::End(activity->recorder().Begin(kSend, 4), true);
    activity->Complete();
    Call(*activity, 2);
    activity.reset();
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const std::vector<FlightHistory> histories = Histories();
  ASSERT_THAT(histories, SizeIs(2));
  EXPECT_EQ(InWords(histories[0].operations), "1 under way | 0 under way");
  EXPECT_TRUE(histories[0].is_live);
  EXPECT_EQ(histories[1].group, "of the child");
  EXPECT_EQ(InWords(histories[1].operations), "7");
  EXPECT_TRUE(ReadGroups(page).at(0).is_under_way);
}

TEST_F(FlightRecorderTest, CutAfterShowsTheStateOfAMoment) {
  const auto operation = [](uint64_t number, FlightState state, uint64_t begin, uint64_t end) {
    return FlightOperation{
        .what = AllReduce(number), .state = state, .tag = 0, .begin = begin, .end = end};
  };
  const FlightHistory later{.group = "later",
                            .size = 1,
                            .is_live = true,
                            .begun = 1,
                            .operations = {operation(1, FlightState::kFailed, 101, 102)}};
  FlightHistory world = later;
  world.operations = {
      operation(1, FlightState::kSucceeded, 10, 100), operation(2, FlightState::kFailed, 20, 101),
      operation(3, FlightState::kUnderWay, 100, 0), operation(4, FlightState::kUnderWay, 101, 0)};
  std::vector<FlightHistory> histories{later, world};
  CutAfter(100, histories);
  ASSERT_THAT(histories, SizeIs(1));
  EXPECT_EQ(InWords(histories[0].operations), "1 | 2 under way | 3 under way");
  EXPECT_EQ(histories[0].operations[1].end, 0U);
}

TEST_F(FlightRecorderTest, APageForWhichFilesMayNotBeLargeHasNoRecorder) {
  struct sigaction before;
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &before);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto made = StatusPage::Create();
  setrlimit(RLIMIT_FSIZE, &limit);
  sigaction(SIGXFSZ, &before, nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->flight_groups(), nullptr);
  Activity activity(&*made, "world", 4);
  Call(activity, 1);
  FlightRecorder::End(activity.recorder().Begin(kSend, 0), true);
  EXPECT_THAT(ReadFlightHistories(*made), IsEmpty());
  EXPECT_EQ(ReadGroups(*made).at(0).completed, 1U);
}

}  // namespace
}  // namespace rankrun
