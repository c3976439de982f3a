// Restarts that the user asks for, by `rankctl restart`.

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

struct WorkerGroupRestartTest : testing::Test {
  WorkerGroupRestartTest() { Apply(StartOrdered{4}); }

  void Apply(const Event& event) {
    Transition transition = Step(policy, state, event, clock.Now());
    state = transition.next;
    actions = transition.actions;
  }
  void EndAll(bool failed) {
    Apply(WorkerEnded{0, failed});
    Apply(WorkerEnded{1, failed});
    Apply(NothingLeft{});
  }

  FakeClock clock;
  GroupPolicy policy{
      .workers = 2, .shutdown_timeout = milliseconds(30), .sweep_timeout = milliseconds(10)};
  GroupState state;
  Actions actions;
};

TEST_F(WorkerGroupRestartTest, RunningWorkersAreAskedToEndWithinTheDeadline) {
  Apply(RestartRequested{});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kStopping);
  EXPECT_EQ(state.deadline, clock.Now() + policy.shutdown_timeout);
}

TEST_F(WorkerGroupRestartTest, TheCoordinatorOrdersTheNextAttempt) {
  Apply(RestartRequested{});
  EndAll(false);
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_FALSE(state.has_succeeded());
  Apply(StartOrdered{5});
  EXPECT_EQ(state.attempt, 5);
  EXPECT_FALSE(state.was_ordered);
}

TEST_F(WorkerGroupRestartTest, ARequestToStopComesFirst) {
  Apply(RestartRequested{});
  Apply(StopRequested{SIGTERM});
  EndAll(true);
  Apply(StartOrdered{5});
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kStopped);
}

TEST_F(WorkerGroupRestartTest, TheTimeLimitComesFirst) {
  Apply(RestartRequested{});
  Apply(TimeLimitReached{});
  EndAll(true);
  Apply(StartOrdered{5});
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kTimedOut);
}

TEST_F(WorkerGroupRestartTest, WorkersThatEndAlreadyAreLeftAlone) {
  Apply(WorkerEnded{0, true});
  ASSERT_EQ(state.phase, Phase::kStopping);
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
  Apply(WorkerEnded{1, true});
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
}

TEST_F(WorkerGroupRestartTest, AfterTheEndNothingStarts) {
  EndAll(false);
  Apply(EndOrdered{true});
  ASSERT_TRUE(state.over());
  Apply(RestartRequested{});
  EXPECT_TRUE(actions.empty());
  EXPECT_TRUE(state.over());
}

}  // namespace
}  // namespace rankrun::agent
