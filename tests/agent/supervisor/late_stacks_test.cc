#include "agent/supervisor/late_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LateStacksTest, StacksAreTakenInTheLastHalfOfAStop) {
  EXPECT_EQ(LeadOfStacks(seconds(30)), milliseconds(2'500));
  EXPECT_EQ(LeadOfStacks(seconds(3)), milliseconds(1'500));
  EXPECT_EQ(LeadOfStacks(milliseconds(400)), std::nullopt);
  EXPECT_EQ(LeadOfStacks(seconds(0)), std::nullopt);
}

struct LateStacksRunTest : ::testing::Test {
  // Returns the record of a worker that is this process.
  AttemptRecord RecordOfOwn() const {
    AttemptRecord record;
    record.workers.resize(2);
    record.workers[1].pid = getpid();
    stacks.AddTo(record);
    return record;
  }
  GroupState Stopping() const {
    GroupState state;
    state.phase = Phase::kStopping;
    state.stop_began = now;
    state.deadline = now + seconds(1);
    return state;
  }

  const TimePoint now = std::chrono::steady_clock::now();
  Loop loop;
  Spawner spawner{loop};
  mutable LateStacks stacks{loop, spawner};
  int asked = 0;
  std::function<std::vector<pid_t>()> workers = [this] {
    asked += 1;
    return std::vector<pid_t>{getpid()};
  };
};

TEST_F(LateStacksRunTest, WorkersAreAskedForBeforeTheDeadline) {
  stacks.Arm(Stopping(), now, workers);
  ASSERT_TRUE(loop.RunUntil([this] { return asked > 0; }, test::kLong));
  EXPECT_GE(std::chrono::steady_clock::now() - now, milliseconds(500));
}

TEST_F(LateStacksRunTest, AKillOrAShortStopNeedsNoStacks) {
  GroupState killed = Stopping();
  killed.kill_now = true;
  stacks.Arm(killed, now, workers);
  GroupState brief = Stopping();
  brief.deadline = now + milliseconds(200);
  stacks.Arm(brief, now, workers);
  GroupState sweeping = Stopping();
  sweeping.phase = Phase::kSweeping;
  stacks.Arm(sweeping, now, workers);
  loop.RunUntil([] { return false; }, milliseconds(700));
  EXPECT_EQ(asked, 0);
}

TEST_F(LateStacksRunTest, TheRecordOfAWorkerGetsItsStacksOnce) {
  bool done = false;
  stacks.Take({getpid()}, seconds(20), [&] { done = true; });
  EXPECT_FALSE(done) << "called inside the call";
  ASSERT_TRUE(loop.RunUntil([&] { return done; }, test::kLong));
  AttemptRecord record = RecordOfOwn();
  EXPECT_EQ(record.workers[0].stacks, WorkerStacks{});
  EXPECT_NE(record.workers[1].stacks, WorkerStacks{});
  EXPECT_EQ(RecordOfOwn().workers[1].stacks, WorkerStacks{});
}

TEST_F(LateStacksRunTest, CancellingCallsBackAtOnce) {
  bool done = false;
  stacks.Take({getpid()}, seconds(20), [&] { done = true; });
  stacks.Cancel();
  EXPECT_TRUE(done);
  EXPECT_EQ(RecordOfOwn().workers[1].stacks.note, "there was no time to read its stack");
}

}  // namespace
}  // namespace rankrun::agent
