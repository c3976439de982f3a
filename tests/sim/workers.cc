#include <algorithm>

#include "tests/sim/node.h"

// The second half of Node: starts, faults and ends of its workers.

namespace rankrun::sim {
namespace {

constexpr int kWorkersCode = 7;
constexpr int kLongestKernelKill = 150;  // ms; within the gone bound

}  // namespace

void Node::PlanWorkers(Duration delay, std::function<void()> what) {
  uint64_t plan = ++workers_.plan;
  stage_.time.After(delay, [this, plan, what = std::move(what)] {
    if (plan != workers_.plan) return;
    TimePoint frozen = stage_.hosts[setup_.host].frozen_until;
    if (frozen <= stage_.time.now()) return what();
    PlanWorkers(frozen - stage_.time.now() + milliseconds(1), what);
  });
}

Duration Node::KillTime() {
  if (stage_.dice.Chance(stage_.plan.slow_death_percent)) return stage_.dice.Between(600, 950);
  return stage_.dice.Between(1, 20);
}

void Node::Do(const agent::MakeReady& action) {
  checker_.OnMakeReady(Here(), action.round);
  workers_.first_rank = action.round.first_rank;
  int round = action.round.round;
  bool fails = !stage_.is_calm && stage_.dice.Chance(stage_.plan.fails_percent / 4);
  stage_.time.After(stage_.dice.Between(1, 20), [this, round, fails, life = agent_life_] {
    if (life != agent_life_) return;
    Post([this, round, fails] {
      if (member_->phase() != agent::MemberPhase::kPreparing || member_->round() != round) return;
      if (!fails) return StepMember(agent::Ready{round, 1});
      checker_.OnFailure();
      StepMember(agent::PartFailed{{.text = "no port for the store", .exit_code = kWorkersCode}});
    });
  });
}

void Node::Do(const agent::StartWorkers& action) {
  stage_.Trace(name_, [&] { return "starts its workers"; });
  checker_.OnStart(Here(), action.start_round.round);
  workers_.are_alive = true;
  workers_.are_killed = false;
  workers_.is_over_told = false;
  const Plan& plan = stage_.plan;
  Duration length = stage_.dice.Between(static_cast<int>(plan.shortest_run.count()),
                                        static_cast<int>(plan.longest_run.count()));
  const bool is_sick = setup_.number == plan.sick_node;
  if (is_sick || (!stage_.is_calm && stage_.dice.Chance(plan.fails_percent))) {
    return PlanWorkers(length, [this] { FailWorkers(true); });
  }
  bool hangs = !stage_.is_calm && stage_.dice.Chance(plan.hangs_percent);
  if (hangs) length += milliseconds(25'000);
  PlanWorkers(length, [this] { WorkersGone(true); });
}

void Node::Do(const agent::StopWorkers& action) {
  // Breaks and late packets can add up to more than the lease.
  bool is_silence_long = stage_.time.now() - answered_ >= stage_.plan.policy.node_timeout * 2 / 3;
  if (action.at_once && is_silence_long) checker_.SetPure(false);
  if (!workers_.are_alive) {
    if (!workers_.is_over_told) return;  // WorkersOver is under way
    Post([this] { StepMember(agent::WorkersOver{false}); });
    return;
  }
  if (action.at_once) {
    KillWorkers();
  } else {
    TerminateWorkers();
  }
}

void Node::FailWorkers(bool is_primary) {
  if (!workers_.are_alive || life_ != Life::kUp || !has_work()) return;
  stage_.Trace(name_, [] { return "a worker fails"; });
  checker_.OnFailure();
  TerminateWorkers();
  Post([this, is_primary] {
    StepMember(agent::PartFailed{{.text = "a worker of " + name_ + " failed",
                                  .exit_code = kWorkersCode,
                                  .rank = workers_.first_rank,
                                  .is_primary = is_primary}});
  });
}

void Node::TerminateWorkers() {
  if (!workers_.are_alive || workers_.are_killed || GetStuck(stage_.plan.grace)) return;
  bool is_stubborn = !stage_.is_calm && stage_.dice.Chance(stage_.plan.stubborn_percent);
  Duration time =
      is_stubborn ? Duration(stage_.plan.grace) + KillTime() : stage_.dice.Between(1, 300);
  PlanWorkers(time, [this] { WorkersGone(false); });
}

void Node::KillWorkers() {
  if (workers_.are_killed || GetStuck(milliseconds(1))) return;
  workers_.are_killed = true;
  PlanWorkers(KillTime(), [this] { WorkersGone(false); });
}

// Agent and guardian are gone, so that workers die of their PDEATHSIG.
void Node::LetKernelKillWorkers() {
  if (!workers_.are_alive || workers_.is_stuck) return;
  workers_.are_killed = true;
  PlanWorkers(stage_.liveness_dice.Between(0, kLongestKernelKill), [this] { WorkersGone(false); });
}

// Draws whether the workers survive the SIGKILL that comes after that time.
bool Node::GetStuck(Duration after) {
  if (workers_.is_stuck) return true;
  if (stage_.is_calm || !stage_.stuck_dice.Chance(stage_.plan.stuck_percent)) return false;
  PlanWorkers(after, [this] { BeStuck(); });
  return true;
}

void Node::BeStuck() {
  stage_.Trace(name_, [] { return "its workers do not die"; });
  workers_.is_stuck = true;
  checker_.OnWorkersGone(setup_.number);
  stage_.time.After(stage_.plan.policy.node_timeout, [this, plan = workers_.plan] {
    if (plan + 1 != workers_.plan || !workers_.is_stuck)
      return;  // the workers or the machine are gone
    Post([this] { StepMember(agent::WorkersStuck{{.local_rank = 0, .what = "a stuck process"}}); });
  });
  workers_.is_stuck_for_ever = stage_.stuck_dice.Chance(40);
  constexpr std::chrono::hours kForEver{24};
  PlanWorkers(workers_.is_stuck_for_ever ? Duration(kForEver)
                                         : Duration(stage_.stuck_dice.Between(1, 20'000)),
              [this] { WorkersGone(false); });
}

void Node::WorkersGone(bool have_succeeded) {
  stage_.Trace(name_, [&] {
    return std::string("its workers are gone") + (have_succeeded ? ", they have succeeded" : "");
  });
  workers_.are_alive = workers_.is_stuck = false;
  checker_.OnWorkersGone(setup_.number);
  if (life_ == Life::kDown) return StartNextLife();
  Post([this, have_succeeded] {
    workers_.is_over_told = true;
    StepMember(agent::WorkersOver{have_succeeded});
  });
}

void Node::Request(const agent::MemberEvent& event) {
  const bool is_joining = member_->phase() == agent::MemberPhase::kJoining;
  const TimePoint now = stage_.LocalNow(setup_.host);
  Carry(request_->OnRequest(event, coordinator_.has_value(), is_joining, now));
}

void Node::Carry(const std::optional<agent::MemberEvent>& request) {
  if (request && member_->phase() != agent::MemberPhase::kOver) StepMember(*request);
  auto deadline = request_->deadline();
  if (!deadline || life_ != Life::kUp) return;
  stage_.time.After(*deadline - stage_.LocalNow(setup_.host), [this, life = agent_life_] {
    if (life != agent_life_) return;
    Post([this] { Carry(request_->OnTick(stage_.LocalNow(setup_.host))); });
  });
}

void Node::Drain() {
  if (life_ != Life::kUp) return;
  stage_.Trace(name_, [] { return "is drained"; });
  is_leaving_ = true;
  checker_.OnDrain(setup_.number);
  Post([this] {
    if (member_->phase() == agent::MemberPhase::kOver) return;
    TerminateWorkers();
    Request(agent::LeaveWanted{"SIGTERM"});
  });
}

void Node::Close() {
  if (life_ != Life::kUp) return;
  stage_.Trace(name_, [] { return "is closed"; });
  constexpr int kCode = 130;
  checker_.OnClose(kCode);
  Post([this] {
    if (member_->phase() == agent::MemberPhase::kOver) return;
    TerminateWorkers();
    Request(agent::CloseWanted{{.text = "Ctrl-C at " + name_, .exit_code = kCode}});
  });
}

}  // namespace rankrun::sim
