#include <utility>

#include "agent/coordination/hosting.h"
#include "tests/sim/node.h"

// The part of Node for the starts and ends of its agents.

namespace rankrun::sim {

void Node::StartAgent() {
  if (life_ != Life::kDown || !guardian_lives_) return;
  const agent::CoordinatorPolicy& policy = stage_.plan.policy;
  life_ = Life::kUp;
  incarnation_ += 1;
  agent_life_ += 1;
  has_retired_ = coordinator_was_used_ = false;
  end_.emplace(policy.node_timeout);
  request_.emplace(policy.node_timeout);
  link_ = 0;
  failed_dials_ = 0;
  stopped_until_ = member_armed_ = coordinator_armed_ = {};
  answered_ = stage_.time.now();
  stage_.Trace(name_, [&] { return "agent " + std::to_string(incarnation_) + " starts"; });
  agent::Hello about{.node = id_,
                     .incarnation = incarnation_,
                     .name = name_,
                     .slots = 1 + setup_.number % 3,
                     .min_nodes = policy.min_nodes,
                     .max_nodes = policy.max_nodes,
                     .node_rank = setup_.claimed_rank,
                     .addresses = {name_},
                     .liveness_port = PortOf(setup_.number)};
  TimePoint now = stage_.LocalNow(setup_.host);
  member_.emplace(agent::MemberPolicy{policy.join_timeout, policy.node_timeout}, about, now);
  lease_end_ = now + member_->lease();
  StartCoordinator(now);
  if (life_ != Life::kUp) return;
  ArmMember();
  Dial();
}

// Starts the coordinator if it belongs here.
void Node::StartCoordinator(TimePoint now) {
  agent::NodesSpec nodes;
  nodes.is_host = has_coordinator();
  const agent::Hosting hosting(nodes, incarnation_ == 0, kept_.has_value());
  if (hosting.Start() != agent::HostingStart::kHost) return;
  agent::CoordinatorPolicy own = stage_.plan.policy;
  own.own_node = id_;
  coordinator_.emplace(own, kept_, now);
  if (!kept_) kept_.emplace();
  watch_.emplace(own.node_timeout);
  watched_.clear();
  watch_armed_ = {};
  network_.Listen(setup_.host, &coordinator_face_);
  StepCoordinator(agent::Tick{});
}

void Node::CrashAgent(const std::string& why) {
  if (life_ != Life::kUp) return;
  stage_.Trace(name_, [&] { return "the agent dies: " + why; });
  life_ = Life::kDown;
  agent_life_ += 1;
  crash_in_ = -1;
  member_.reset();
  coordinator_.reset();
  inbox_.clear();
  network_.CloseAllOf(&member_face_);
  network_.CloseAllOf(&coordinator_face_);
  checker_.OnFailure();
  checker_.OnGone(setup_.number);
  if (workers_.are_alive) {
    KillWorkers();
  } else {
    StartNextLife();
  }
}

// Starts the next agent process; no worker of the previous one is left.
void Node::StartNextLife() {
  if (life_ != Life::kDown || !guardian_lives_) return;
  PlanWorkers(stage_.dice.Between(1, 10), [this] { StartAgent(); });
}

void Node::LoseHost() {
  if (life_ == Life::kOver) return;
  stage_.Trace(name_, [] { return "the machine is gone"; });
  life_ = Life::kOver;
  agent_life_ += 1;
  guardian_lives_ = false;
  member_.reset();
  coordinator_.reset();
  inbox_.clear();
  network_.ForgetAllOf(&member_face_);
  network_.ForgetAllOf(&coordinator_face_);
  workers_.are_alive = workers_.is_stuck = false;
  workers_.plan += 1;
  checker_.OnWorkersGone(setup_.number);
  checker_.OnGone(setup_.number);
  if (has_coordinator()) checker_.OnWorldOver(setup_.world);
}

void Node::KillGuardian() {
  if (life_ == Life::kOver) return;
  guardian_lives_ = false;
  CrashAgent("its guardian was killed");
  life_ = Life::kOver;
  LetKernelKillWorkers();
  checker_.OnGone(setup_.number);
  if (has_coordinator()) checker_.OnWorldOver(setup_.world);
}

void Node::End(const std::string& why) {
  stage_.Trace(name_, [&] { return "rankrun ends: " + why; });
  life_ = Life::kOver;
  agent_life_ += 1;
  inbox_.clear();
  network_.CloseAllOf(&member_face_);
  network_.CloseAllOf(&coordinator_face_);
  if (has_coordinator()) checker_.OnWorldOver(setup_.world);
}

// --- The end ---

void Node::Do(const agent::EndNode& action) {
  stage_.Trace(name_,
               [&] { return "is over: " + std::to_string(action.exit_code) + " " + action.text; });
  checker_.OnEnd(Here(), action.exit_code, workers_.are_alive);
  Carry(end_->OnEnd(action, "", ViewOfEnd()));
}

agent::EndView Node::ViewOfEnd() {
  return {.is_link_up = link_ != 0,
          .is_hosting = coordinator_.has_value(),
          .host_was_used = coordinator_was_used_,
          .now = stage_.LocalNow(setup_.host)};
}

void Node::Carry(const std::vector<agent::EndAction>& actions) {
  for (const agent::EndAction& action : actions) {
    const bool closes = std::holds_alternative<agent::CloseLink>(action) && link_ != 0;
    if (closes) network_.Close(std::exchange(link_, 0), &member_face_);
    if (std::holds_alternative<agent::EndAgent>(action)) return End("all messages are sent");
  }
  CheckEnd();
}

// Takes the steps of the end that are due, and plans the next one.
void Node::CheckEnd() {
  auto deadline = end_->deadline();
  if (!deadline) return;
  const agent::EndView view = ViewOfEnd();
  if (*deadline <= view.now) return Carry(end_->OnTick(view));
  stage_.time.After(*deadline - view.now, [this, life = agent_life_] {
    if (life == agent_life_) Post([this] { CheckEnd(); });
  });
}

}  // namespace rankrun::sim
