#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <set>

#include "agent/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// A node that obeys worker_group: it has workers and things left behind, and
// checks each transition against what it knows itself.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    policy_.workers = Below(4) + 1;
    policy_.max_restarts = Below(4);
    policy_.shutdown_timeout = milliseconds(Below(50) + 1);
    policy_.sweep_timeout = milliseconds(Below(20) + 1);
  }

  void Run() {
    Apply(Begin{});
    for (int i = Below(40); i > 0 && !state_.over(); --i) Disturb();
    // From here on all workers end and every question is answered.
    for (int i = 0; i < 100 && !state_.over(); ++i) Settle();
    EXPECT_TRUE(state_.over()) << "the job never gets over";
    CheckVerdict();
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void Disturb() {
    switch (Below(8)) {
      case 0:
        if (!starting_.empty()) StartOne();
        break;
      case 1:
      case 2:
        if (alive_ > 0) EndOne(Below(3) == 0);
        break;
      case 3:
        if (sweep_owed_ && Below(2) == 0) AnswerSweep();
        break;
      case 4:
        if (Below(4) == 0) Stop();
        break;
      case 5:
        Apply(DeadlinePassed{});  // early, late or of another phase
        break;
      default:
        now_ += milliseconds(Below(30));
    }
  }

  void Settle() {
    now_ += milliseconds(1);
    if (alive_ > 0) {
      EndOne(Below(2) == 0);
    } else if (sweep_owed_) {
      AnswerSweep();
    }
  }

  void StartOne() {
    int local_rank = *starting_.begin();
    starting_.erase(local_rank);
    Apply(WorkerStarted{local_rank});
  }

  void EndOne(bool failed) {
    alive_ -= 1;
    if (!starting_.empty() && Below(2) == 0) starting_.erase(starting_.begin());
    attempt_failed_ |= failed;
    bool stops = failed && alive_ > 0 && !stopping_;
    if (stops) BeginStop();
    if (alive_ == 0) BeginSweep();
    Apply(WorkerEnded{failed});
  }

  void AnswerSweep() {
    sweep_owed_ = false;
    swept_ = true;
    Apply(NothingLeft{});
    swept_ = false;
  }

  void Stop() {
    requests_ += 1;
    if (!stopping_ && alive_ > 0) BeginStop();
    Apply(StopRequested{SIGINT});
  }

  void BeginStop() {
    stopping_ = true;
    may_kill_from_ = now_ + policy_.shutdown_timeout;
  }
  void BeginSweep() { may_kill_from_ = now_ + policy_.sweep_timeout; }

  void Apply(const Event& event) {
    GroupState before = state_;
    Transition transition = Step(policy_, state_, event, now_);
    state_ = transition.next;
    if (before.over()) {
      EXPECT_EQ(state_.phase, before.phase);
      EXPECT_TRUE(transition.actions.empty());
    }
    for (const Action& action : transition.actions) {
      std::visit([this](const auto& a) { Check(a); }, action);
    }
    EXPECT_EQ(state_.alive, alive_);
    EXPECT_GE(state_.alive, 0);
  }

  void Check(const StartAttempt&) {
    EXPECT_EQ(requests_, 0) << "started after a request to stop";
    EXPECT_EQ(alive_, 0) << "started beside living workers";
    EXPECT_TRUE(starts_ == 0 || (swept_ && attempt_failed_)) << "started without a reason";
    starts_ += 1;
    EXPECT_LE(starts_, policy_.max_restarts + 1);
    alive_ = policy_.workers;
    for (int rank = 0; rank < policy_.workers; ++rank) starting_.insert(rank);
    attempt_failed_ = stopping_ = killed_ = false;
  }

  void Check(const SignalWorkers& action) {
    EXPECT_GT(alive_, 0) << "nobody to signal";
    EXPECT_TRUE(stopping_);
    if (action.signal_number == SIGKILL) CheckKill();
  }

  void Check(const Sweep& action) {
    EXPECT_EQ(alive_, 0);
    sweep_owed_ = true;
    if (action.signal_number == SIGKILL) CheckKill();
  }

  void Check(const ArmDeadline&) {
    EXPECT_FALSE(state_.over());
    EXPECT_GE(state_.deadline, may_kill_from_);
  }

  void CheckKill() {
    EXPECT_TRUE(requests_ >= 2 || now_ >= may_kill_from_ || killed_) << "killed without a reason";
    killed_ = true;
  }

  void CheckVerdict() {
    Phase expected = attempt_failed_ ? Phase::kFailed : Phase::kSucceeded;
    if (requests_ > 0) expected = Phase::kStopped;
    EXPECT_EQ(state_.phase, expected);
    if (expected == Phase::kFailed) {
      EXPECT_EQ(starts_, policy_.max_restarts + 1);
    }
  }

  std::mt19937 random_;
  GroupPolicy policy_;
  GroupState state_;
  TimePoint now_{};
  int alive_ = 0;
  std::set<int> starting_;
  int starts_ = 0;
  int requests_ = 0;
  bool attempt_failed_ = false;
  bool stopping_ = false;    // in this attempt
  bool killed_ = false;      // in this attempt
  bool sweep_owed_ = false;  // NothingLeft has been asked for
  bool swept_ = false;       // ... and is being told
  TimePoint may_kill_from_{};
};

TEST(WorkerGroupRandomTest, NoSequenceOfEventsBreaksAnInvariant) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace rankrun::agent
