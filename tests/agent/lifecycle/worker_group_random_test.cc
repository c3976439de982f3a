#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <random>
#include <set>

#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// A node with workers and leftover processes that obeys worker_group. It checks
// each transition against its own state.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    policy_.workers = Below(4) + 1;
    max_restarts_ = Below(4);
    policy_.save_timeout = milliseconds(Below(100));
    policy_.continue_on_failure = Below(4) == 0;
    policy_.victim_grace = milliseconds(Below(3) == 0 ? Below(60) : 0);
    policy_.is_one_of_several = Below(2) == 0;
    policy_.shutdown_timeout = milliseconds(Below(50) + 1);
    policy_.sweep_timeout = milliseconds(Below(20) + 1);
  }

  void Run() {
    Command();
    for (int i = Below(50); i > 0 && !state_.over(); --i) Disturb();
    // From here on, all workers end and every request is answered.
    for (int i = 0; i < 400 && !state_.over(); ++i) Settle();
    EXPECT_TRUE(state_.over()) << "the job never ends";
    CheckVerdict();
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void Disturb() {
    switch (Below(12)) {
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
        PassDeadline();  // early, late or for another phase
        break;
      case 6:
      case 7:
        if (alive_ > 0) Save(Below(policy_.workers), Below(2) == 0);
        break;
      case 8:
        if (Below(8) == 0) ReachTimeLimit();
        break;
      case 9:
        if (Below(4) == 0) Command();
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
    } else {
      PassDeadline();
      Command();
    }
  }

  // Does what the coordinator does once nothing runs: orders the next attempt or the end.
  void Command() {
    if (state_.phase != Phase::kIdle) return;
    bool is_asked_to_end = requests_ > 0 || timed_out_;
    bool starts = starts_ == 0 || (attempt_failed_ && starts_ <= max_restarts_);
    if (starts && Below(8) != 0) Apply(StartOrdered{starts_});
    if (state_.phase != Phase::kIdle || (starts && !is_asked_to_end)) return;
    Apply(EndOrdered{state_.has_succeeded()});
  }

  void StartOne() {
    int local_rank = *starting_.begin();
    starting_.erase(local_rank);
    Apply(WorkerStarted{local_rank});
  }

  void EndOne(bool failed) {
    alive_ -= 1;
    int local_rank = *ranks_.begin();
    ranks_.erase(local_rank);
    saving_.erase(local_rank);
    if (!starting_.empty() && Below(2) == 0) starting_.erase(starting_.begin());
    bool is_victim = Below(2) == 0;
    if (failed) NoteFailure(is_victim);
    bool stops = failed && alive_ > 0 && !stopping_ && !policy_.continue_on_failure && !cause_by_;
    if (stops) BeginStop();
    if (alive_ == 0) BeginSweep();
    Apply(WorkerEnded{local_rank, failed, is_victim});
  }

  void NoteFailure(bool is_victim) {
    bool waits = !attempt_failed_ && is_victim && !stopping_ && !policy_.continue_on_failure;
    if (waits && policy_.victim_grace > milliseconds(0)) cause_by_ = now_ + policy_.victim_grace;
    if (!is_victim) cause_by_.reset();
    attempt_failed_ = true;
  }

  void PassDeadline() {
    bool stops = alive_ > 0 && !stopping_ && cause_by_ && now_ >= *cause_by_;
    if (stops) BeginStop();
    Apply(DeadlinePassed{});
  }

  void Save(int local_rank, bool saving) {
    if (!ranks_.contains(local_rank)) return;
    if (!saving) saving_.erase(local_rank);
    if (saving && !killed_) saving_.insert(local_rank);
    Apply(WorkerSaves{local_rank, saving});
  }

  void ReachTimeLimit() {
    bool done = alive_ == 0 && sweep_owed_ && !attempt_failed_;
    timed_out_ |= !done;
    if (!stopping_ && alive_ > 0) BeginStop();
    Apply(TimeLimitReached{});
  }

  void AnswerSweep() {
    sweep_owed_ = false;
    Apply(NothingLeft{});
  }

  void Stop() {
    requests_ += 1;
    if (!stopping_ && alive_ > 0) BeginStop();
    Apply(StopRequested{SIGINT});
  }

  void BeginStop() {
    stopping_ = true;
    stop_began_ = now_;
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

  void Check(const ReportStuck&) { FAIL() << "reported for a job on one node"; }
  void Check(const StartAttempt&) {
    EXPECT_EQ(requests_, 0) << "started after a request to stop";
    EXPECT_FALSE(timed_out_) << "started after the time limit";
    EXPECT_EQ(alive_, 0) << "started beside living workers";
    EXPECT_TRUE(starts_ == 0 || attempt_failed_) << "started without a reason";
    EXPECT_FALSE(sweep_owed_) << "started before the sweep was complete";
    starts_ += 1;
    alive_ = policy_.workers;
    for (int rank = 0; rank < policy_.workers; ++rank) ranks_.insert(rank);
    starting_ = ranks_;
    saving_.clear();
    attempt_failed_ = stopping_ = killed_ = false;
    cause_by_.reset();
  }

  void Check(const SignalWorkers& action) {
    EXPECT_GT(alive_, 0) << "nobody to signal";
    EXPECT_TRUE(stopping_);
    if (action.signal_number != SIGKILL) return;
    CheckKill();
    bool to_all = !action.local_rank && requests_ < 2;
    if (!to_all || now_ >= stop_began_ + policy_.save_timeout) return;
    EXPECT_EQ(action.but_saving ? state_.saving : std::set<int>(), saving_)
        << "killed a worker that saves";
  }

  void Check(const AwaitSaving& action) {
    EXPECT_TRUE(stopping_ && saving_.contains(action.local_rank));
    EXPECT_GT(policy_.save_timeout, policy_.shutdown_timeout);
  }

  void Check(const Sweep& action) {
    EXPECT_EQ(alive_, 0);
    sweep_owed_ = true;
    if (action.signal_number != SIGKILL) return;
    CheckKill();
    if (action.but_stopping || !stopping_) return;
    EXPECT_TRUE(requests_ >= 2 || now_ >= stop_began_ + policy_.shutdown_timeout)
        << "killed what is left of stopped workers in their time";
  }

  void Check(const ArmDeadline&) {
    EXPECT_FALSE(state_.over());
    bool waits_for_cause = cause_by_ && !stopping_ && (alive_ > 0 || !sweep_owed_);
    EXPECT_GE(state_.deadline, waits_for_cause ? *cause_by_ : may_kill_from_);
  }

  void CheckKill() {
    EXPECT_TRUE(requests_ >= 2 || now_ >= may_kill_from_ || killed_) << "killed without a reason";
    killed_ = true;
  }

  void CheckVerdict() {
    Phase expected = attempt_failed_ ? Phase::kFailed : Phase::kSucceeded;
    if (timed_out_) expected = Phase::kTimedOut;
    if (requests_ > 0) expected = Phase::kStopped;
    EXPECT_EQ(state_.phase, expected);
  }

  std::mt19937 random_;
  GroupPolicy policy_;
  int max_restarts_ = 0;
  GroupState state_;
  TimePoint now_{};
  int alive_ = 0;
  std::set<int> ranks_;     // alive workers
  std::set<int> starting_;  // their start has not been reported yet
  std::set<int> saving_;
  int starts_ = 0;
  int requests_ = 0;
  bool attempt_failed_ = false;
  std::optional<TimePoint> cause_by_ = {};  // in this attempt
  bool stopping_ = false;                   // in this attempt
  bool killed_ = false;                     // in this attempt
  bool sweep_owed_ = false;                 // NothingLeft is due
  bool timed_out_ = false;
  TimePoint stop_began_{};
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
