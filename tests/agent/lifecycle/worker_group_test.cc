#include "agent/lifecycle/worker_group.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

const Actions kNothing{};

struct WorkerGroupTest : testing::Test {
  void Apply(const Event& event) {
    Transition transition = Step(policy, state, event, clock.Now());
    state = transition.next;
    actions = transition.actions;
  }
  void End(bool failed, int local_rank = 0) { Apply(WorkerEnded{local_rank, failed}); }
  void StopBy(int signal_number) { Apply(StopRequested{signal_number}); }

  // Bring the group into a phase.
  void Run() { Apply(StartOrdered{0}); }
  void StopAfterAFailure() {
    Run();
    End(true);
  }
  void Sweep(bool failed) {
    Run();
    End(false);
    if (failed) {
      End(true);
    } else {
      End(false);
    }
  }
  void PassDeadline() {
    clock.Advance(state.deadline - clock.Now());
    Apply(DeadlinePassed{});
  }

  static Actions SignalAll(int number) { return {SignalWorkers{number, std::nullopt}}; }

  FakeClock clock;
  GroupPolicy policy{
      .workers = 2, .shutdown_timeout = milliseconds(30), .sweep_timeout = milliseconds(10)};
  GroupState state;
  Actions actions;
};

TEST_F(WorkerGroupTest, NothingRunsWithoutAnOrder) {
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_FALSE(state.over());
  EXPECT_FALSE(state.has_succeeded());
}

TEST_F(WorkerGroupTest, AnOrderStartsAnAttempt) {
  Run();
  EXPECT_EQ(actions, Actions{StartAttempt{}});
  EXPECT_EQ(state.phase, Phase::kRunning);
  EXPECT_EQ(state.attempt, 0);
  EXPECT_EQ(state.alive, 2);
  EXPECT_FALSE(state.over());
}

// --- running

TEST_F(WorkerGroupTest, RunningAStartedWorkerNeedsNothing) {
  Run();
  Apply(WorkerStarted{0});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.alive, 2);
}

TEST_F(WorkerGroupTest, RunningASuccessWaitsForTheOthers) {
  Run();
  End(false);
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kRunning);
  EXPECT_EQ(state.alive, 1);
}

TEST_F(WorkerGroupTest, OneCrashTerminatesTheRest) {
  Run();
  End(true);
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kStopping);
  EXPECT_EQ(state.deadline, clock.Now() + policy.shutdown_timeout);
}

TEST_F(WorkerGroupTest, RunningTheLastEndSweepsWhatIsLeftBehind) {
  Sweep(false);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGTERM}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kSweeping);
  EXPECT_EQ(state.deadline, clock.Now() + policy.sweep_timeout);
}

TEST_F(WorkerGroupTest, RunningTheLastEndSweepsAfterAFailureToo) {
  Sweep(true);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGTERM}, ArmDeadline{}}));
  EXPECT_TRUE(state.failed);
}

TEST_F(WorkerGroupTest, RunningAStopRequestPassesItsSignalOn) {
  Run();
  StopBy(SIGINT);
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGINT, std::nullopt}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kStopping);
  EXPECT_EQ(state.stop_signal, SIGINT);
  EXPECT_EQ(state.deadline, clock.Now() + policy.shutdown_timeout);
}

TEST_F(WorkerGroupTest, RunningNothingLeftIsNoEnd) {
  Run();
  Apply(NothingLeft{});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kRunning);
}

TEST_F(WorkerGroupTest, RunningADeadlineIsOneOfAnEarlierPhase) {
  Run();
  clock.Advance(std::chrono::hours(1));
  Apply(DeadlinePassed{});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kRunning);
}

// --- stopping

TEST_F(WorkerGroupTest, StoppingALateStartIsSignalledToo) {
  StopAfterAFailure();
  Apply(WorkerStarted{1});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, 1}}));
}

TEST_F(WorkerGroupTest, StoppingALateStartGetsTheSignalOfTheRequest) {
  Run();
  StopBy(SIGINT);
  Apply(WorkerStarted{0});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGINT, 0}}));
}

TEST_F(WorkerGroupTest, StoppingALateStartIsKilledAfterTheDeadline) {
  StopAfterAFailure();
  PassDeadline();
  Apply(WorkerStarted{1});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGKILL, 1}}));
}

TEST_F(WorkerGroupTest, StoppingMoreFailuresChangeNothing) {
  policy.workers = 3;
  StopAfterAFailure();
  TimePoint deadline = state.deadline;
  clock.Advance(milliseconds(5));
  End(true);
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.deadline, deadline);
  EXPECT_EQ(state.phase, Phase::kStopping);
}

TEST_F(WorkerGroupTest, StoppingTheLastEndSweeps) {
  StopAfterAFailure();
  End(true);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGTERM, /*but_stopping=*/true}, ArmDeadline{}}));
  EXPECT_EQ(state.phase, Phase::kSweeping);
}

TEST_F(WorkerGroupTest, StragglerIsKilledOnlyAfterTheGrace) {
  StopAfterAFailure();
  clock.Advance(policy.shutdown_timeout - milliseconds(1));
  Apply(DeadlinePassed{});
  EXPECT_EQ(actions, Actions{ArmDeadline{}});
  clock.Advance(milliseconds(1));
  Apply(DeadlinePassed{});
  Actions kill_and_look_again = SignalAll(SIGKILL);
  kill_and_look_again.push_back(ArmDeadline{});
  EXPECT_EQ(actions, kill_and_look_again);
  EXPECT_EQ(state.phase, Phase::kStopping);
  clock.Advance(policy.sweep_timeout);
  Apply(DeadlinePassed{});
  EXPECT_EQ(actions, kill_and_look_again);
}

TEST_F(WorkerGroupTest, AfterAKillTheSweepKillsAtOnce) {
  StopAfterAFailure();
  PassDeadline();
  End(true);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupTest, StoppingAfterAFailureTheFirstRequestOnlyForbidsARestart) {
  StopAfterAFailure();
  TimePoint deadline = state.deadline;
  StopBy(SIGINT);
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.deadline, deadline);
  End(true);
  Apply(NothingLeft{});
  Apply(StartOrdered{1});
  EXPECT_EQ(actions, kNothing);
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kStopped);
  EXPECT_EQ(state.attempt, 0);
}

TEST_F(WorkerGroupTest, StoppingASecondRequestKillsAtOnce) {
  Run();
  StopBy(SIGINT);
  StopBy(SIGTERM);
  EXPECT_EQ(actions, SignalAll(SIGKILL));
  EXPECT_EQ(state.stop_signal, SIGINT) << "the first signal determines how the job ends";
  End(true);
  End(true);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupTest, StoppingNothingLeftIsNoEnd) {
  StopAfterAFailure();
  Apply(NothingLeft{});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kStopping);
}

// --- sweeping

TEST_F(WorkerGroupTest, SweepingALateStartNeedsNothing) {
  Sweep(false);
  Apply(WorkerStarted{0});
  EXPECT_EQ(actions, kNothing);
}

TEST_F(WorkerGroupTest, SweepingEndsInSuccess) {
  Sweep(false);
  Apply(NothingLeft{});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_TRUE(state.has_succeeded());
  Apply(EndOrdered{true});
  EXPECT_EQ(state.phase, Phase::kSucceeded);
  EXPECT_TRUE(state.over());
}

TEST_F(WorkerGroupTest, AfterAFailureTheCoordinatorOrdersTheNextAttempt) {
  Sweep(true);
  Apply(NothingLeft{});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_FALSE(state.has_succeeded());
  Apply(StartOrdered{1});
  EXPECT_EQ(actions, Actions{StartAttempt{}});
  EXPECT_EQ(state.phase, Phase::kRunning);
  EXPECT_EQ(state.attempt, 1);
  EXPECT_EQ(state.alive, 2);
  EXPECT_FALSE(state.failed);
}

TEST_F(WorkerGroupTest, AfterAFailureTheCoordinatorMayOrderTheEnd) {
  Sweep(true);
  Apply(NothingLeft{});
  Apply(EndOrdered{false});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kFailed);
}

TEST_F(WorkerGroupTest, AKillDoesNotReachIntoTheNextAttempt) {
  StopAfterAFailure();
  PassDeadline();
  End(true);
  Apply(NothingLeft{});
  Apply(StartOrdered{1});
  End(false);
  End(false);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGTERM}, ArmDeadline{}}));
}

TEST_F(WorkerGroupTest, SweepingARequestStopsTheRestart) {
  Sweep(true);
  StopBy(SIGTERM);
  EXPECT_EQ(actions, kNothing);
  Apply(NothingLeft{});
  EXPECT_EQ(actions, kNothing);
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kStopped);
}

TEST_F(WorkerGroupTest, SweepingASecondRequestKills) {
  Sweep(false);
  StopBy(SIGTERM);
  StopBy(SIGTERM);
  EXPECT_EQ(actions, Actions{agent::Sweep{SIGKILL}});
}

TEST_F(WorkerGroupTest, LeftoversAreKilledRepeatedlyAfterTheTimeout) {
  Sweep(false);
  clock.Advance(policy.sweep_timeout - milliseconds(1));
  Apply(DeadlinePassed{});
  EXPECT_EQ(actions, Actions{ArmDeadline{}});
  clock.Advance(milliseconds(1));
  for (int i = 0; i < 3; ++i) {
    Apply(DeadlinePassed{});
    EXPECT_EQ(actions, (Actions{agent::Sweep{SIGKILL}, ArmDeadline{}}));
    EXPECT_EQ(state.deadline, clock.Now() + policy.sweep_timeout);
    clock.Advance(policy.sweep_timeout);
  }
}

// --- over

TEST_F(WorkerGroupTest, OverIsOver) {
  const Event events[] = {WorkerStarted{0}, WorkerSaves{0, true},  WorkerStuck{0},    NothingLeft{},
                          DeadlinePassed{}, StopRequested{SIGINT}, TimeLimitReached{}};
  for (Phase phase : {Phase::kSucceeded, Phase::kFailed, Phase::kStopped, Phase::kTimedOut}) {
    for (const Event& event : events) {
      state = GroupState{.phase = phase, .attempt = 0};
      clock.Advance(milliseconds(100));
      Apply(event);
      EXPECT_EQ(actions, kNothing);
      EXPECT_EQ(state.phase, phase);
      EXPECT_EQ(state.attempt, 0);
      EXPECT_EQ(state.stop_signal, 0);
    }
  }
}

TEST_F(WorkerGroupTest, OneWorkerThatFailsHasNobodyToStop) {
  policy.workers = 1;
  Run();
  End(true);
  EXPECT_EQ(actions, (Actions{agent::Sweep{SIGTERM}, ArmDeadline{}}));
}

}  // namespace
}  // namespace rankrun::agent
