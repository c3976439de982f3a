// Workers that save, the time limit, failures that do not stop the others.

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

const Actions kNothing{};

struct WorkerGroupEndsTest : testing::Test {
  WorkerGroupEndsTest() { Apply(StartOrdered{0}); }

  void Apply(const Event& event) {
    Transition transition = Step(policy, state, event, clock.Now());
    state = transition.next;
    actions = transition.actions;
  }
  void At(int milliseconds_since_begin, const Event& event) {
    clock.Advance(begin + milliseconds(milliseconds_since_begin) - clock.Now());
    Apply(event);
  }
  void FailAll() {
    while (state.alive > 0) Apply(WorkerEnded{state.alive - 1, true});
    Apply(NothingLeft{});
  }
  void FailAllAndEnd() {
    FailAll();
    Apply(EndOrdered{false});
  }
  static Actions Kill(bool but_saving = false) {
    return {SignalWorkers{SIGKILL, std::nullopt, but_saving}, ArmDeadline{}};
  }
  void ExpectKillBut(const std::set<int>& spared) {
    EXPECT_EQ(actions, Kill(/*but_saving=*/true));
    EXPECT_EQ(state.saving, spared);
  }

  FakeClock clock;
  TimePoint begin = clock.Now();
  GroupPolicy policy{.workers = 3,
                     .shutdown_timeout = milliseconds(30),
                     .save_timeout = milliseconds(100),
                     .sweep_timeout = milliseconds(10)};
  GroupState state;
  Actions actions;
};

// --- surviving SIGKILL

TEST_F(WorkerGroupEndsTest, SurvivorsOfSigkillAreReportedOnceAfterTheTimeout) {
  policy.stuck_timeout = milliseconds(15);
  policy.save_timeout = milliseconds(0);
  Apply(StopRequested{SIGTERM});
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
  At(40, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
  At(50, DeadlinePassed{});
  Actions told = Kill();
  told.insert(told.end(), {Sweep{SIGKILL}, ReportStuck{}});
  EXPECT_EQ(actions, told);
  At(60, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, LeftoversThatSurviveSigkillAreReportedToo) {
  policy.stuck_timeout = milliseconds(15);
  policy.continue_on_failure = true;  // so that they end by themselves
  for (int i = 0; i < 3; ++i) Apply(WorkerEnded{i, true});
  for (int at : {10, 20}) {
    At(at, DeadlinePassed{});
    EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
  }
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}, ReportStuck{}}));
}

// --- leftovers of workers that were stopped

TEST_F(WorkerGroupEndsTest, LeftoversOfStoppedWorkersHaveTheTimeOfTheStop) {
  Apply(StopRequested{SIGTERM});
  At(5, WorkerEnded{0, true});
  At(6, WorkerEnded{1, true});
  At(7, WorkerEnded{2, true});
  EXPECT_EQ(actions, (Actions{Sweep{SIGTERM, true}, ArmDeadline{}}));
  for (int at : {17, 27}) {
    At(at, DeadlinePassed{});
    EXPECT_EQ(actions, (Actions{Sweep{SIGKILL, true}, ArmDeadline{}})) << "others have no time";
  }
  EXPECT_EQ(state.deadline, begin + milliseconds(30));
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupEndsTest, AStopOfAllWorkersAfterAFailureIsAStop) {
  At(1, WorkerEnded{0, true});
  At(2, WorkerEnded{1, true});
  At(3, WorkerEnded{2, true});
  EXPECT_EQ(actions, (Actions{Sweep{SIGTERM, true}, ArmDeadline{}}));
  At(31, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupEndsTest, LeftoversThatSaveHaveTheTimeToSave) {
  Apply(StopRequested{SIGTERM});
  for (int i = 0; i < 3; ++i) Apply(WorkerEnded{i, true});
  At(20, WorkerSaves{1, true});
  EXPECT_EQ(actions, Actions{AwaitSaving{1}});
  At(99, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL, true}, ArmDeadline{}}));
  At(100, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupEndsTest, ALeftoverOfAWorkerThatWasSavingHasTheTimeToSave) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  for (int i = 0; i < 3; ++i) Apply(WorkerEnded{i, true});
  At(99, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL, true}, ArmDeadline{}}));
  At(100, DeadlinePassed{});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
}

TEST_F(WorkerGroupEndsTest, OrdersToEndAtOnceEndTheTimeOfLeftovers) {
  for (const Event& order : {Event(StopOrdered{.at_once = true}), Event(StopRequested{SIGINT})}) {
    state = {};
    Apply(StartOrdered{0});
    Apply(StopRequested{SIGTERM});
    for (int i = 0; i < 3; ++i) Apply(WorkerEnded{i, true});
    Apply(order);
    EXPECT_EQ(actions, Actions{Sweep{SIGKILL}});
    Apply(DeadlinePassed{});
    EXPECT_EQ(actions, Actions{ArmDeadline{}}) << "woken early";
    EXPECT_FALSE(state.grace_until);
  }
}

TEST_F(WorkerGroupEndsTest, LeftoversOfKilledWorkersHaveNoTime) {
  Apply(StopRequested{SIGTERM});
  Apply(StopRequested{SIGTERM});
  for (int i = 0; i < 3; ++i) Apply(WorkerEnded{i, true});
  EXPECT_EQ(actions, (Actions{Sweep{SIGKILL}, ArmDeadline{}}));
}

// --- saving

TEST_F(WorkerGroupEndsTest, AWorkerThatSavesIsAwaitedForLonger) {
  Apply(WorkerSaves{2, true});
  EXPECT_EQ(actions, kNothing);
  Apply(StopRequested{SIGTERM});
  EXPECT_EQ(actions,
            (Actions{SignalWorkers{SIGTERM, std::nullopt}, AwaitSaving{2}, ArmDeadline{}}));
  At(30, DeadlinePassed{});
  ExpectKillBut({2});
  EXPECT_EQ(state.deadline, begin + milliseconds(40));
}

TEST_F(WorkerGroupEndsTest, TheSaveTimeIsBounded) {
  Apply(WorkerSaves{2, true});
  Apply(StopRequested{SIGTERM});
  At(95, DeadlinePassed{});
  ExpectKillBut({2});
  EXPECT_EQ(state.deadline, begin + milliseconds(100));
  At(100, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, ASignalledWorkerMayStillBeginToSave) {
  Apply(WorkerEnded{0, true});
  At(29, WorkerSaves{1, true});
  EXPECT_EQ(actions, (Actions{AwaitSaving{1}}));
  At(30, DeadlinePassed{});
  ExpectKillBut({1});
}

TEST_F(WorkerGroupEndsTest, SavingIsAnnouncedOncePerAttempt) {
  Apply(StopRequested{SIGTERM});
  for (int i = 0; i < 3; ++i) {
    Apply(WorkerSaves{1, true});
    EXPECT_EQ(actions, i == 0 ? Actions{AwaitSaving{1}} : kNothing);
    Apply(WorkerSaves{1, false});
  }
}

TEST_F(WorkerGroupEndsTest, SavingAfterTheKillIsTooLate) {
  Apply(StopRequested{SIGTERM});
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
  Apply(WorkerSaves{1, true});
  EXPECT_EQ(actions, kNothing);
  At(40, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, AWorkerThatHasSavedGetsAMomentToEnd) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  At(30, DeadlinePassed{});
  At(39, WorkerSaves{1, false});
  EXPECT_EQ(actions, Actions{ArmDeadline{}});
  EXPECT_EQ(state.deadline, begin + milliseconds(49));
  At(49, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, SavingBeforeTheDeadlineKeepsTheDeadline) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  At(5, WorkerSaves{1, false});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.deadline, begin + milliseconds(30));
}

TEST_F(WorkerGroupEndsTest, ASecondRequestKillsThoseThatSaveToo) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  Apply(StopRequested{SIGTERM});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGKILL, std::nullopt}}));
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, AShorterSaveTimeoutGivesNothingMore) {
  policy.save_timeout = milliseconds(20);
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, AnEndedWorkerIsNotAwaited) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGTERM});
  Apply(WorkerEnded{1, true});
  At(30, DeadlinePassed{});
  EXPECT_EQ(actions, Kill());
}

TEST_F(WorkerGroupEndsTest, TheNextAttemptHasSavedNothingYet) {
  Apply(WorkerSaves{1, true});
  FailAll();
  Apply(StartOrdered{1});
  Apply(StopRequested{SIGTERM});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
}

// --- signals that are not handled

TEST_F(WorkerGroupEndsTest, AnUnhandledSignalKillsAtOnce) {
  Apply(WorkerSaves{1, true});
  Apply(StopRequested{SIGQUIT, true});
  EXPECT_EQ(actions, Kill());
  EXPECT_EQ(state.deadline, begin + policy.sweep_timeout);
  Apply(WorkerStarted{0});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGKILL, 0}}));
  FailAllAndEnd();
  EXPECT_EQ(state.phase, Phase::kStopped);
  EXPECT_EQ(state.stop_signal, SIGQUIT);
}

TEST_F(WorkerGroupEndsTest, AnUnhandledSignalHurriesAGentleEnd) {
  Apply(WorkerEnded{0, true});
  Apply(StopRequested{SIGQUIT, true});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGKILL, std::nullopt}}));
}

// --- the time limit

TEST_F(WorkerGroupEndsTest, TheTimeLimitStopsGently) {
  Apply(TimeLimitReached{});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  EXPECT_EQ(state.deadline, begin + policy.shutdown_timeout);
  FailAllAndEnd();
  EXPECT_EQ(state.phase, Phase::kTimedOut);
}

TEST_F(WorkerGroupEndsTest, TheTimeLimitForbidsARestart) {
  Apply(WorkerEnded{0, true});
  Apply(TimeLimitReached{});
  EXPECT_EQ(actions, kNothing);
  FailAll();
  Apply(StartOrdered{1});
  EXPECT_EQ(actions, kNothing);
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kTimedOut);
}

TEST_F(WorkerGroupEndsTest, WorkDoneInTimeIsASuccess) {
  for (int rank = 0; rank < 3; ++rank) Apply(WorkerEnded{rank, false});
  Apply(TimeLimitReached{});
  Apply(NothingLeft{});
  EXPECT_TRUE(state.has_succeeded());
}

TEST_F(WorkerGroupEndsTest, TheFirstRequestAfterTheTimeLimitIsNoted) {
  Apply(TimeLimitReached{});
  Apply(StopRequested{SIGINT});
  EXPECT_EQ(actions, kNothing);
  FailAllAndEnd();
  EXPECT_EQ(state.phase, Phase::kStopped);
}

// --- failures that do not stop the others

TEST_F(WorkerGroupEndsTest, AFailureMayLeaveTheOthersAlone) {
  policy.continue_on_failure = true;
  Apply(WorkerEnded{0, true});
  EXPECT_EQ(actions, kNothing);
  EXPECT_EQ(state.phase, Phase::kRunning);
  Apply(WorkerEnded{1, false});
  Apply(WorkerEnded{2, false});
  EXPECT_EQ(state.phase, Phase::kSweeping);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kIdle) << "all workers restart only now";
}

TEST_F(WorkerGroupEndsTest, AToleratedFailureStillFailsTheJob) {
  policy.continue_on_failure = true;
  Apply(WorkerEnded{0, true});
  Apply(WorkerEnded{1, false});
  Apply(WorkerEnded{2, false});
  Apply(NothingLeft{});
  EXPECT_FALSE(state.has_succeeded());
}

// --- stuck workers

TEST_F(WorkerGroupEndsTest, AStuckWorkerStopsTheOthers) {
  Apply(WorkerStuck{1});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  FailAllAndEnd();
  EXPECT_EQ(state.phase, Phase::kFailed);
  EXPECT_EQ(state.stuck, 1);
  EXPECT_EQ(state.attempt, 0);
}

// --- workers that hang

TEST_F(WorkerGroupEndsTest, WorkersThatHangAreStopped) {
  Apply(WorkersHang{});
  EXPECT_EQ(actions, (Actions{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}}));
  Apply(WorkersHang{});
  EXPECT_EQ(actions, kNothing);
  FailAll();
  EXPECT_EQ(state.phase, Phase::kIdle);
  EXPECT_FALSE(state.has_succeeded());
}

// --- idle

struct IdleTest : WorkerGroupEndsTest {
  IdleTest() { FailAll(); }
};

TEST_F(IdleTest, ARequestToStopForbidsTheNextAttempt) {
  Apply(StopRequested{SIGINT});
  EXPECT_EQ(actions, kNothing);
  Apply(StartOrdered{1});
  EXPECT_EQ(actions, kNothing);
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kStopped);
}

TEST_F(IdleTest, TheTimeLimitForbidsTheNextAttempt) {
  Apply(TimeLimitReached{});
  Apply(StartOrdered{1});
  EXPECT_EQ(actions, kNothing);
  Apply(EndOrdered{false});
  EXPECT_EQ(state.phase, Phase::kTimedOut);
}

TEST_F(IdleTest, LateNewsOfWorkersChangesNothing) {
  for (const Event& event :
       {Event(WorkerSaves{0, true}), Event(WorkerStuck{0}), Event(NothingLeft{}),
        Event(WorkerStarted{0}), Event(RestartRequested{}), Event(DeadlinePassed{})}) {
    Apply(event);
    EXPECT_EQ(actions, kNothing);
    EXPECT_EQ(state.phase, Phase::kIdle);
  }
}

}  // namespace
}  // namespace rankrun::agent
