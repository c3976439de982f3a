// Workers that end because another one has: the cause may follow.

#include <gtest/gtest.h>
#include <signal.h>

#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using Actions = std::vector<Action>;

struct WorkerGroupVictimTest : testing::Test {
  WorkerGroupVictimTest() { Apply(StartOrdered{0}); }

  void Apply(const Event& event) {
    Transition transition = Step(policy, state, event, clock.Now());
    state = transition.next;
    actions = transition.actions;
  }
  void EndVictim(int local_rank) { Apply(WorkerEnded{local_rank, true, /*may_be_victim=*/true}); }
  void EndVictimOfAll() {
    for (int i = 0; i < policy.workers; ++i) EndVictim(i);
    Apply(NothingLeft{});
  }
  void PassDeadline() {
    clock.Advance(state.deadline - clock.Now());
    Apply(DeadlinePassed{});
  }

  const Actions kStop{SignalWorkers{SIGTERM, std::nullopt}, ArmDeadline{}};
  FakeClock clock;
  TimePoint begin = clock.Now();
  GroupPolicy policy{.workers = 3,
                     .shutdown_timeout = milliseconds(30),
                     .sweep_timeout = milliseconds(10),
                     .victim_grace = milliseconds(7)};
  GroupState state;
  Actions actions;
};

TEST_F(WorkerGroupVictimTest, TheOthersMaySayTheCauseFirst) {
  EndVictim(1);
  EXPECT_EQ(actions, Actions{ArmDeadline{}});
  EXPECT_EQ(state.phase, Phase::kRunning);
  EXPECT_EQ(state.deadline, begin + milliseconds(7));
  clock.Advance(milliseconds(5));
  Apply(DeadlinePassed{});
  EXPECT_EQ(actions, Actions{ArmDeadline{}}) << "woken early";
  PassDeadline();
  EXPECT_EQ(actions, kStop);
  EXPECT_EQ(state.phase, Phase::kStopping);
}

TEST_F(WorkerGroupVictimTest, AnotherVictimDoesNotProlongTheWait) {
  EndVictim(1);
  clock.Advance(milliseconds(5));
  EndVictim(0);
  EXPECT_EQ(state.deadline, begin + milliseconds(7));
}

TEST_F(WorkerGroupVictimTest, TheCauseEndsTheWait) {
  EndVictim(1);
  Apply(WorkerEnded{0, true});
  EXPECT_EQ(actions, kStop);
}

TEST_F(WorkerGroupVictimTest, ASuccessDoesNotEndTheWait) {
  EndVictim(1);
  Apply(WorkerEnded{0, false});
  EXPECT_EQ(state.phase, Phase::kRunning);
  PassDeadline();
  EXPECT_EQ(actions, kStop);
}

TEST_F(WorkerGroupVictimTest, AVictimAfterTheCauseChangesNothing) {
  Apply(WorkerEnded{0, true});
  const TimePoint deadline = state.deadline;
  EndVictim(1);
  EXPECT_EQ(actions, Actions{});
  EXPECT_EQ(state.deadline, deadline);
}

TEST_F(WorkerGroupVictimTest, RequestsAndOrdersEndTheWait) {
  for (const Event& event : {Event(StopRequested{SIGTERM}), Event(StopOrdered{false}),
                             Event(TimeLimitReached{}), Event(RestartRequested{})}) {
    state = {};
    Apply(StartOrdered{0});
    EndVictim(1);
    Apply(event);
    EXPECT_EQ(actions, kStop);
    PassDeadline();
    EXPECT_EQ(actions, (Actions{SignalWorkers{SIGKILL, std::nullopt}, ArmDeadline{}}));
  }
}

TEST_F(WorkerGroupVictimTest, WithContinueOnFailureNothingWaits) {
  policy.continue_on_failure = true;
  EndVictim(1);
  EXPECT_EQ(actions, Actions{});
}

TEST_F(WorkerGroupVictimTest, OneNodeDoesNotWaitOnceAllHaveEnded) {
  EndVictimOfAll();
  EXPECT_EQ(state.phase, Phase::kIdle);
}

TEST_F(WorkerGroupVictimTest, OneNodeOfSeveralWaitsForTheOthers) {
  policy.is_one_of_several = true;
  EndVictimOfAll();
  EXPECT_EQ(state.phase, Phase::kSweeping);
  EXPECT_EQ(actions, Actions{ArmDeadline{}});
  EXPECT_EQ(state.deadline, begin + milliseconds(7));
  PassDeadline();
  EXPECT_EQ(actions, Actions{});
  EXPECT_EQ(state.phase, Phase::kIdle);
}

TEST_F(WorkerGroupVictimTest, OneNodeOfSeveralDoesNotWaitAfterItsOwnCause) {
  policy.is_one_of_several = true;
  EndVictim(1);
  Apply(WorkerEnded{0, true});
  EndVictim(2);
  Apply(NothingLeft{});
  EXPECT_EQ(state.phase, Phase::kIdle);
}

TEST_F(WorkerGroupVictimTest, RequestsAndOrdersEndTheWaitForOtherNodes) {
  policy.is_one_of_several = true;
  for (const Event& event :
       {Event(StopRequested{SIGTERM}), Event(StopOrdered{false}), Event(TimeLimitReached{})}) {
    state = {};
    Apply(StartOrdered{0});
    EndVictimOfAll();
    ASSERT_EQ(state.phase, Phase::kSweeping);
    Apply(event);
    EXPECT_EQ(actions, Actions{});
    EXPECT_EQ(state.phase, Phase::kIdle);
    Apply(StartOrdered{1});
    if (std::holds_alternative<StopOrdered>(event)) {
      EXPECT_EQ(state.phase, Phase::kRunning);
    }
  }
}

}  // namespace
}  // namespace rankrun::agent
