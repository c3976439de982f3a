#include "agent/nodes/local_coordinator.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct LocalCoordinatorTest : testing::Test {
  struct Decision {
    bool restarts;
    bool is_free;
    int number;
    Duration pause;
    bool operator==(const Decision&) const = default;
  };

  LocalCoordinatorTest() {
    spec.workers = 2;
    spec.max_restarts = 2;
    spec.restart_pause = milliseconds(0);
    auto created = JobMemory::Create();
    EXPECT_TRUE(created);
    record = created->Read();
    BeginLife();
  }

  // Begins a life of the agent with `record`, which the guardian has left.
  void BeginLife() {
    coordinator.reset();
    incarnation.reset();
    auto memory = JobMemory::Create();
    ASSERT_TRUE(memory);
    ASSERT_TRUE(memory->Write(record));
    link = GuardianLink::CreatePair();
    ASSERT_TRUE(link);
    incarnation.emplace(std::move(link->second), std::move(*memory));
    coordinator.emplace(
        loop, spec, *incarnation,
        LocalCoordinator::Callbacks{
            .open_store = [this] { return port++; },
            .start = [this](const NodePlace& place) { started.push_back(place); },
            .on_decided =
                [this](const RoundOutcome& outcome, Duration pause, int restarts) {
                  decisions.push_back({outcome.restarts, outcome.is_free, restarts, pause});
                },
            .on_end = [this](int exit_code) { ends.push_back(exit_code); }});
    coordinator->Begin();
  }
  // Does what the guardian does between two agents.
  void AgentDies() {
    record = incarnation->record();
    record.incarnation += 1;
    record.restarts->used += 1;
    BeginLife();
  }
  void NoteState(GroupState state) {
    incarnation->Note(spec, state.attempt, nullptr);
    coordinator->NoteState(state);
  }
  void Fail() {
    coordinator->NoteFailure({.text = "rank 0: exit code 3", .exit_code = 3, .rank = 0});
    coordinator->NoteWorkersOver(false);
  }
  int restarts_used() const { return incarnation->record().restarts->used; }

  Loop loop;
  JobSpec spec;
  JobRecord record;
  uint16_t port = 1000;
  Result<std::pair<GuardianLink, GuardianLink>> link = Error{ErrorCode::kSystem, "none"};
  std::optional<Incarnation> incarnation;
  std::optional<LocalCoordinator> coordinator;
  std::vector<NodePlace> started;
  std::vector<Decision> decisions;
  std::vector<int> ends;
};

TEST_F(LocalCoordinatorTest, TheWorkersStartAtOnce) {
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].attempt, 0);
  EXPECT_EQ(started[0].world_size, 2);
  EXPECT_EQ(started[0].node_count, 1);
  EXPECT_EQ(started[0].master_port, 1000);
  EXPECT_TRUE(decisions.empty());
}

TEST_F(LocalCoordinatorTest, ASuccessEndsTheJob) {
  coordinator->NoteWorkersOver(true);
  EXPECT_EQ(ends, std::vector{0});
  EXPECT_TRUE(decisions.empty());
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(LocalCoordinatorTest, AFailureRestartsAllWorkersWithAnotherStore) {
  coordinator->NoteFailure({.text = "rank 0: exit code 3", .exit_code = 3, .rank = 0});
  EXPECT_EQ(started.size(), 1U) << "one still runs";
  coordinator->NoteWorkersOver(false);
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[1].attempt, 1);
  EXPECT_EQ(started[1].master_port, 1001);
  EXPECT_EQ(decisions, (std::vector{Decision{true, false, 1, Duration::zero()}}));
}

TEST_F(LocalCoordinatorTest, TheLastRestartIsTheLast) {
  for (int i = 0; i < 3; ++i) Fail();
  EXPECT_EQ(started.size(), 3U);
  EXPECT_EQ(ends, std::vector{3});
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_FALSE(decisions.back().restarts);
}

TEST_F(LocalCoordinatorTest, TheSecondRestartWaits) {
  spec.restart_pause = milliseconds(20);
  BeginLife();
  started.clear();
  Fail();
  EXPECT_FALSE(coordinator->is_pausing());
  Fail();
  EXPECT_TRUE(coordinator->is_pausing());
  EXPECT_EQ(started.size(), 1U);
  EXPECT_EQ(decisions.back().pause, milliseconds(20));
  EXPECT_TRUE(loop.RunUntil([&] { return started.size() == 2; }, seconds(30)));
}

struct PausingTest : LocalCoordinatorTest {
  PausingTest() {
    spec.restart_pause = std::chrono::hours(1);
    BeginLife();
    Fail();
    Fail();
    started.clear();
    EXPECT_TRUE(coordinator->is_pausing());
  }
};

TEST_F(PausingTest, TheUserEndsThePause) {
  coordinator->EndPause();
  EXPECT_EQ(started.size(), 1U);
  coordinator->EndPause();
  EXPECT_EQ(started.size(), 1U) << "there is none";
}

TEST_F(PausingTest, ARequestToStopEndsTheJob) {
  coordinator->RequestClose({.text = "stopped", .exit_code = 143, .is_fatal = true});
  EXPECT_EQ(ends, std::vector{143});
  EXPECT_TRUE(started.empty());
}

TEST_F(PausingTest, ARestartThatWaitsIsNotCountedTwice) {
  EXPECT_EQ(restarts_used(), 1);
  AgentDies();
  EXPECT_EQ(restarts_used(), 2);
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(LocalCoordinatorTest, ARestartThatTheUserAsksForIsNotCounted) {
  coordinator->NoteFailure({.text = "rankctl", .is_primary = false, .consumes_restart = false});
  coordinator->NoteWorkersOver(false);
  EXPECT_EQ(started.size(), 2U);
  EXPECT_EQ(started.back().attempt, 1);
  EXPECT_EQ(decisions, (std::vector{Decision{true, true, 0, Duration::zero()}}));
  EXPECT_EQ(restarts_used(), 0);
}

TEST_F(LocalCoordinatorTest, ARequestToStopWaitsForTheWorkers) {
  coordinator->RequestClose({.text = "stopped", .exit_code = 143, .is_fatal = true});
  EXPECT_TRUE(ends.empty());
  coordinator->NoteWorkersOver(true);
  EXPECT_EQ(ends, std::vector{143});
  EXPECT_EQ(started.size(), 1U);
}

TEST_F(LocalCoordinatorTest, ARequestAfterAFailureForbidsTheRestart) {
  coordinator->NoteFailure({.text = "rank 0: exit code 3", .exit_code = 3, .rank = 0});
  coordinator->RequestClose({.text = "stopped", .exit_code = 143, .is_fatal = true});
  coordinator->NoteWorkersOver(false);
  EXPECT_EQ(ends, std::vector{143});
  EXPECT_EQ(started.size(), 1U);
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_FALSE(decisions[0].restarts);
}

TEST_F(LocalCoordinatorTest, TheNextAgentGoesOnWithTheNextAttempt) {
  Fail();
  NoteState({.phase = Phase::kRunning, .attempt = 1});
  EXPECT_TRUE(incarnation->record().may_restart);
  AgentDies();
  ASSERT_EQ(started.size(), 3U);
  EXPECT_EQ(started.back().attempt, 2);
  Fail();
  EXPECT_EQ(ends, std::vector{3}) << "both restarts are used up";
}

TEST_F(LocalCoordinatorTest, TheBudgetIsKnownBeforeTheFirstAttempt) {
  coordinator.reset();
  record.restarts.reset();
  incarnation->Write(record);
  coordinator.emplace(loop, spec, *incarnation, LocalCoordinator::Callbacks{});
  NoteState({});
  EXPECT_TRUE(incarnation->record().may_restart);
  EXPECT_EQ(incarnation->record().restarts, (RestartsUsed{.used = 0, .most = 2}));
}

TEST_F(LocalCoordinatorTest, AnAgentThatDiesBeforeItsFirstAttemptUsesUpARestart) {
  NoteState({});
  AgentDies();
  EXPECT_EQ(started.back().attempt, 1);
  EXPECT_EQ(restarts_used(), 1);
}

TEST(CanResumeTest, ADoneOrEndedJobDoesNotGoOn) {
  const GroupState running{.phase = Phase::kRunning};
  EXPECT_TRUE(CanResumeAfterAgentDeath({})) << "not begun yet";
  EXPECT_TRUE(CanResumeAfterAgentDeath(running));
  for (Phase phase : {Phase::kSweeping, Phase::kIdle}) {
    GroupState state{.phase = phase, .attempt = 0};
    EXPECT_FALSE(CanResumeAfterAgentDeath(state)) << "all workers have succeeded";
    state.was_ordered = true;
    EXPECT_TRUE(CanResumeAfterAgentDeath(state)) << "a restart";
    state = {.phase = phase, .attempt = 0, .failed = true};
    EXPECT_TRUE(CanResumeAfterAgentDeath(state));
  }
  for (Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kStopped, Phase::kTimedOut}) {
    EXPECT_FALSE(CanResumeAfterAgentDeath({.phase = phase}));
  }
  GroupState state = running;
  state.stop_signal = SIGTERM;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
  state = running;
  state.timed_out = true;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
  state = running;
  state.stuck = 1;
  EXPECT_FALSE(CanResumeAfterAgentDeath(state));
}

}  // namespace
}  // namespace rankrun::agent
