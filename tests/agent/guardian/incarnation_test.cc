#include "agent/guardian/incarnation.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

struct IncarnationTest : testing::Test {
  IncarnationTest() {
    spec.max_restarts = 3;
    auto created = JobMemory::Create();
    EXPECT_TRUE(created);
    memory.emplace(std::move(*created));
  }

  // Runs one incarnation in a process of its own, as agents do. It begins with
  // the record of the previous one.
  void Live(const std::function<void(Incarnation&)>& life) {
    pid_t agent = test::Fork([&] {
      auto pair = GuardianLink::CreatePair();
      Incarnation incarnation(std::move(pair->second), std::move(*memory));
      life(incarnation);
      return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(test::WaitForExit(agent), (ProcessExit{}));
  }
  // Does what the guardian does between two agents.
  void Restart(int used) {
    JobRecord record = memory->Read();
    record.incarnation += 1;
    record.restarts->used = used;
    EXPECT_TRUE(memory->Write(record));
  }

  JobSpec spec;
  std::optional<JobMemory> memory;
};

GroupState Running(int attempt) {
  return {.phase = Phase::kRunning, .attempt = attempt, .history = {.restarts = attempt}};
}

TEST_F(IncarnationTest, TheFirstBeginsWithNothing) {
  Live([&](Incarnation& life) {
    EXPECT_TRUE(life.is_first());
    EXPECT_EQ(life.FirstState().attempt, -1);
    EXPECT_EQ(life.LeftOf(seconds(5)), seconds(5));
  });
  EXPECT_FALSE(memory->Read().may_restart);
}

TEST_F(IncarnationTest, TheNextGoesOnWithTheNextAttempt) {
  Live([&](Incarnation& life) {
    GroupState state = Running(1);
    state.history.consecutive_failures = 2;
    life.Note(spec, state, nullptr);
  });
  EXPECT_EQ(memory->Read().restarts,
            (RestartsUsed{.used = 1, .most = 3, .consecutive_failures = 2}));
  Restart(2);
  Live([&](Incarnation& life) {
    GroupState state = life.FirstState();
    EXPECT_EQ(state.attempt, 1);
    EXPECT_EQ(state.history, (RestartHistory{.restarts = 2, .consecutive_failures = 2}));
    life.Note(spec, state, nullptr);  // no attempt has begun: used restarts stay used
    EXPECT_EQ(life.record().restarts->used, 2);
    EXPECT_TRUE(life.record().may_restart);
    Transition begun = Step({}, state, Begin{}, TimePoint{});
    EXPECT_EQ(begun.next.attempt, 2);
  });
}

TEST_F(IncarnationTest, ARestartThatWaitsIsNotCountedTwice) {
  Live([&](Incarnation& life) {
    GroupState state = Running(0);
    state.phase = Phase::kPausing;
    state.history.restarts = 1;
    life.Note(spec, state, nullptr);
    EXPECT_EQ(life.record().restarts->used, 0);
  });
}

TEST_F(IncarnationTest, TheNameAndTheTimeOfTheJobStay) {
  Live([&](Incarnation& life) {
    std::string run_id = "first";
    life.KeepRunId(run_id);
    life.Note(spec, Running(0), nullptr);
  });
  JobRecord record = memory->Read();
  record.job_began -= seconds(60);
  ASSERT_TRUE(memory->Write(record));
  Restart(1);
  Live([&](Incarnation& life) {
    std::string run_id = "second";
    life.KeepRunId(run_id);
    EXPECT_EQ(run_id, "first");
    EXPECT_LE(life.LeftOf(seconds(100)), seconds(40));
    EXPECT_GT(life.LeftOf(seconds(100)), seconds(0));
    EXPECT_EQ(life.LeftOf(seconds(50)), seconds(0));
  });
}

TEST_F(IncarnationTest, ForSeveralNodesOnlyTheFolderIsRecorded) {
  spec.nodes.emplace();
  Live([&](Incarnation& life) {
    JobRecord record = life.record();
    record.state = "round 7";
    record.may_restart = true;
    life.Write(record);
    LogDirectory logs(JobFolder{.temporary_base = "", .path = "/nowhere"},
                      LogDirectory::Layout::kFolderPerWorker);
    GroupState over = Running(0);
    over.phase = Phase::kFailed;
    life.Note(spec, over, &logs);
    EXPECT_EQ(life.FirstState().attempt, -1);
  });
  EXPECT_TRUE(memory->Read().may_restart);
  EXPECT_FALSE(memory->Read().restarts);
  EXPECT_EQ(memory->Read().state, "round 7");
  EXPECT_EQ(memory->Read().folder->path, "/nowhere");
}

TEST_F(IncarnationTest, ADoneOrEndedJobDoesNotGoOn) {
  EXPECT_TRUE(CanResumeAfterAgentDeath(GroupState{})) << "not begun yet";
  EXPECT_TRUE(CanResumeAfterAgentDeath(Running(0)));
  GroupState state = Running(0);
  state.phase = Phase::kSweeping;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state)) << "all workers have succeeded";
  state.failed = true;
  EXPECT_TRUE(CanResumeAfterAgentDeath(state));
  for (Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kStopped, Phase::kTimedOut}) {
    state.phase = phase;
    EXPECT_FALSE(CanResumeAfterAgentDeath(state));
  }
  state = Running(0);
  state.stop_signal = SIGTERM;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
  state = Running(0);
  state.timed_out = true;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
  state = Running(0);
  state.stuck = 1;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
}

}  // namespace
}  // namespace rankrun::agent
