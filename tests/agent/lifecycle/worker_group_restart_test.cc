// Restarts that the user asks for, by `rankctl restart`.

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

struct WorkerGroupRestartTest : testing::Test {
  void Apply(const Event& event) {
    Transition transition = Step(policy, state, event, clock.Now());
    state = transition.next;
    actions = transition.actions;
  }
  void EndAll(bool failed) {
    Apply(WorkerEnded{0, failed});
    Apply(WorkerEnded{1, failed});
  }

  FakeClock clock;
  GroupPolicy policy{.workers = 2,
                     .restart = {.max_restarts = 0},
                     .shutdown_timeout = milliseconds(30),
                     .sweep_timeout = milliseconds(10)};
  GroupState state;
  Actions actions;
};

TEST_F(WorkerGroupRestartTest, RunningWorkersAreAskedToEndWithinTheDeadline) {
  Apply(Begin{});
  Apply(RestartRequested{});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kStopping);
  EXPECT_EQ(state.deadline, clock.Now() + policy.shutdown_timeout);
}

TEST_F(WorkerGroupRestartTest, TheNextAttemptUsesNoBudgetHoweverTheWorkersEnd) {
  for (bool failed : {false, true}) {
    state = {};
    Apply(Begin{});
    Apply(RestartRequested{});
    EndAll(failed);
    Apply(NothingLeft{});
    EXPECT_EQ(state.phase, Phase::kRunning);
    EXPECT_EQ(state.attempt, 1);
    EXPECT_EQ(actions, Actions{StartAttempt{}});
    EXPECT_EQ(state.history, RestartHistory{});
  }
}

TEST_F(WorkerGroupRestartTest, AFailureAfterTheRestartIsJudgedAsEver) {
  Apply(Begin{});
  Apply(RestartRequested{});
  EndAll(true);
  Apply(NothingLeft{});
  EndAll(true);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kFailed);
}

TEST_F(WorkerGroupRestartTest, ARequestToStopComesFirst) {
  Apply(Begin{});
  Apply(RestartRequested{});
  Apply(StopRequested{SIGTERM});
  EndAll(true);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kStopped);
}

TEST_F(WorkerGroupRestartTest, TheTimeLimitComesFirst) {
  Apply(Begin{});
  Apply(RestartRequested{});
  Apply(TimeLimitReached{});
  EndAll(true);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kTimedOut);
}

TEST_F(WorkerGroupRestartTest, WorkersThatEndAlreadyAreLeftAlone) {
  policy.restart.max_restarts = 1;
  Apply(Begin{});
  Apply(WorkerEnded{0, true});
  ASSERT_EQ(state.phase, Phase::kStopping);
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
  Apply(WorkerEnded{1, true});
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
  Apply(NothingLeft{});
  EXPECT_EQ(state.history.restarts, 1) << "the failure is counted";
}

TEST_F(WorkerGroupRestartTest, APauseEndsAtOnce) {
  policy.restart.max_restarts = 2;
  Apply(Begin{});
  EndAll(true);
  Apply(NothingLeft{});  // the first restart has no pause
  EndAll(true);
  Apply(NothingLeft{});
  ASSERT_EQ(state.phase, Phase::kPausing);
  Apply(RestartRequested{});
  EXPECT_EQ(actions, Actions{StartAttempt{}});
  EXPECT_EQ(state.attempt, 2);
}

TEST_F(WorkerGroupRestartTest, WithSeveralNodesTheCoordinatorOrdersTheNextAttempt) {
  policy.is_commanded = true;
  Apply(Begin{});
  Apply(StartOrdered{4});
  Apply(RestartRequested{});
  EXPECT_EQ(state.phase, Phase::kStopping);
  EndAll(false);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_FALSE(state.has_succeeded());
  Apply(StartOrdered{5});
  EXPECT_EQ(state.attempt, 5);
  EXPECT_FALSE(state.was_ordered);
}

TEST_F(WorkerGroupRestartTest, AfterTheEndNothingStarts) {
  Apply(Begin{});
  EndAll(false);
  Apply(NothingLeft{});
  ASSERT_TRUE(state.over());
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
  EXPECT_TRUE(state.over());
}

}  // namespace
}  // namespace rankrun::agent
