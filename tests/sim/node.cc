#include "tests/sim/node.h"

#include <algorithm>
#include <utility>

#include "tests/sim/words.h"

// The agent and its guardian. lives.cc has their starts and ends, workers.cc the workers.

namespace rankrun::sim {

using agent::MemberPhase;

Node::Node(Stage& stage, Network& network, Checker& checker, const NodeSetup& setup)
    : stage_(stage),
      network_(network),
      checker_(checker),
      setup_(setup),
      name_("n" + std::to_string(setup.number)),
      id_(stage.dice.Next() | 1) {
  OpenLivenessPort();
}

// --- Standing still ---

TimePoint Node::AwakeAt() {
  return std::max(stopped_until_, stage_.hosts[setup_.host].frozen_until);
}

void Node::Post(std::function<void()> what) {
  if (life_ != Life::kUp) return;
  bool must_wait = AwakeAt() > stage_.time.now() || !inbox_.empty();
  if (!must_wait) return what();
  inbox_.push_back(std::move(what));
  if (inbox_.size() == 1) Wake();
}

// Runs the posted tasks, or tries again when the agent runs again.
void Node::Wake() {
  while (life_ == Life::kUp && !inbox_.empty()) {
    if (AwakeAt() > stage_.time.now()) {
      stage_.time.At(AwakeAt(), [this, life = agent_life_] {
        if (life == agent_life_) Wake();
      });
      return;
    }
    auto what = std::move(inbox_.front());
    inbox_.pop_front();
    what();
  }
}

void Node::StopAgent(Duration how_long) {
  if (life_ != Life::kUp) return;
  stage_.Trace(name_, [] { return "the agent is stopped"; });
  checker_.OnGone(setup_.number);
  stopped_until_ = std::max(stopped_until_, stage_.time.now() + how_long);
  LookAtLease();
}

// The guardian kills a silent agent when its lease ends.
void Node::LookAtLease() {
  TimePoint at = std::max(lease_end_ + stage_.hosts[setup_.host].stood_still,
                          stage_.hosts[setup_.host].frozen_until);
  stage_.time.At(at, [this, life = agent_life_] {
    if (life != agent_life_ || stopped_until_ <= stage_.time.now()) return;
    bool is_early = stage_.LocalNow(setup_.host) < lease_end_ ||
                    stage_.hosts[setup_.host].frozen_until > stage_.time.now();
    if (is_early) return LookAtLease();
    CrashAgent("its lease is over");
  });
}

// --- The cores ---

bool Node::CrashesNow() {
  if (crash_in_ < 0 || --crash_in_ >= 0) return false;
  CrashAgent("between two actions");
  return true;
}

void Node::StepMember(const agent::MemberEvent& event) {
  TimePoint now = stage_.LocalNow(setup_.host);
  std::vector<agent::MemberAction> actions = member_->Step(event, now);
  for (const agent::MemberAction& action : actions) {
    if (CrashesNow()) return;
    std::visit([this](const auto& a) { Do(a); }, action);
    if (life_ != Life::kUp) return;
  }
  lease_end_ = now + member_->lease();
  ArmMember();
}

void Node::StepCoordinator(const agent::CoordinatorEvent& event) {
  agent::JobPhase before = coordinator_->phase();
  auto actions = coordinator_->Step(event, stage_.LocalNow(setup_.host));
  if (coordinator_->phase() != before) {
    stage_.Trace(name_, [&] { return "the job is now " + Words(coordinator_->phase()); });
  }
  for (const agent::CoordinatorAction& action : actions) {
    // A crash before an event differs in nothing from one after it.
    if (!std::holds_alternative<agent::Announcement>(action) && CrashesNow()) return;
    std::visit([this](const auto& a) { Do(a); }, action);
    if (life_ != Life::kUp) return;
  }
  ArmCoordinator();
}

void Node::ArmMember() {
  if (member_->phase() == MemberPhase::kOver) return;
  TimePoint at = member_->deadline() + stage_.hosts[setup_.host].stood_still;
  if (member_armed_ > stage_.time.now() && member_armed_ <= at) return;
  member_armed_ = at;
  stage_.time.At(at, [this, life = agent_life_] {
    if (life != agent_life_) return;
    Post([this] {
      member_armed_ = {};
      if (member_->phase() != MemberPhase::kOver) StepMember(agent::MemberTick{});
    });
  });
}

void Node::ArmCoordinator() {
  if (has_retired_) return;
  TimePoint at = coordinator_->deadline() + stage_.hosts[setup_.host].stood_still;
  if (coordinator_armed_ > stage_.time.now() && coordinator_armed_ <= at) return;
  coordinator_armed_ = at;
  stage_.time.At(at, [this, life = agent_life_] {
    if (life != agent_life_) return;
    Post([this] {
      coordinator_armed_ = {};
      StepCoordinator(agent::Tick{});
    });
  });
}

// --- The network ---

void Node::Dial() {
  if (life_ != Life::kUp || link_ != 0 || member_->phase() == MemberPhase::kOver) return;
  dial_life_ = agent_life_;
  network_.Dial(&member_face_, setup_.coordinator_host);
}

void Node::DialLater() {
  auto pause = std::min(milliseconds(1'000), milliseconds(10) * (1 << std::min(failed_dials_, 7)));
  failed_dials_ += 1;
  stage_.time.After(pause, [this, life = agent_life_] {
    if (life == agent_life_) Post([this] { Dial(); });
  });
}

void Node::Face::OnConnected(ConnectionId id, NetworkUser* peer) {
  Node& node = node_;
  bool is_stale = node.life_ != Life::kUp || node.dial_life_ != node.agent_life_;
  if (is_stale) return node.network_.Close(id, this);
  int world = peer->world();
  node.Post([&node, this, id, world] {
    if (node.link_ != 0 || node.member_->phase() == MemberPhase::kOver) {
      return node.network_.Close(id, this);
    }
    node.link_ = id;
    node.world_ = world;
    node.linked_since_ = node.stage_.time.now();
    node.failed_dials_ = 0;
    node.hello_sent_ = node.stage_.time.now();
    node.beats_sent_.clear();
    node.network_.Send(id, this, agent::MemberMessage(node.member_->hello()));
    node.StepMember(agent::LinkUp{});
  });
}

void Node::Face::OnDialFailed(const std::string& why) {
  Node& node = node_;
  if (node.dial_life_ != node.agent_life_) return;
  node.Post([&node, why] {
    if (node.link_ != 0 || node.member_->phase() == MemberPhase::kOver) return;
    node.StepMember(agent::LinkDown{why});
    if (node.life_ == Life::kUp) node.DialLater();
  });
}

void Node::Face::OnBytes(ConnectionId id, const Bytes& bytes) {
  Node& node = node_;
  if (is_coordinator_) {
    node.Post([&node, id, message = std::get<agent::MemberMessage>(bytes)] {
      if (!node.coordinator_) return;
      if (node.has_retired_) return;
      node.coordinator_was_used_ = true;
      node.StepCoordinator(agent::MessageFromPeer{id, message});
      node.NoteMessage(id, message);
    });
    return;
  }
  node.Post([&node, id, message = std::get<agent::CoordinatorMessage>(bytes)] {
    if (id != node.link_ || node.member_->phase() == MemberPhase::kOver) return;
    node.stage_.Trace(node.name_, [&] { return "receives " + Words(message); });
    if (const auto* verdict = std::get_if<agent::Verdict>(&message)) {
      node.checker_.OnVerdictReceived(node.Here(), *verdict);
    }
    node.NoteAnswer(message);
    node.StepMember(agent::MessageFromCoordinator{message});
    if (node.life_ == Life::kUp) node.Carry(node.request_->OnMessage());
  });
}

void Node::Face::OnClosed(ConnectionId id) {
  Node& node = node_;
  node.Post([&node, id, is_coordinator = is_coordinator_] {
    if (is_coordinator) {
      if (!node.has_retired_) node.StepCoordinator(agent::PeerLost{id});
      return node.NoteBreak(id);
    }
    if (id != node.link_) return;
    node.link_ = 0;
    if (node.member_->phase() == MemberPhase::kOver) return;
    node.stage_.Trace(node.name_, [] { return "notices that its link is down"; });
    node.StepMember(agent::LinkDown{"connection reset"});
    if (node.life_ == Life::kUp) node.DialLater();
  });
}

void Node::NoteAnswer(const agent::CoordinatorMessage& message) {
  if (const auto* beat = std::get_if<agent::Beat>(&message)) {
    auto sent = beats_sent_.find(beat->number);
    if (sent != beats_sent_.end()) answered_ = std::max(answered_, sent->second);
  } else if (std::holds_alternative<agent::Waiting>(message)) {
    answered_ = std::max(answered_, hello_sent_);
  }
}

// --- Actions ---

Checker::Place Node::Here() const {
  return {.node = setup_.number, .host = setup_.host, .incarnation = incarnation_, .world = world_};
}

void Node::Do(const agent::Send& action) {
  stage_.Trace(name_, [&] { return "sends " + Words(action.message); });
  checker_.OnSent(Here(), action.message, workers_.are_alive);
  if (link_ == 0) return;
  if (const auto* beat = std::get_if<agent::Beat>(&action.message)) {
    beats_sent_[beat->number] = stage_.time.now();
  }
  network_.Send(link_, &member_face_, action.message);
}

void Node::Do(const agent::SendMessage& action) {
  if (const auto* m = std::get_if<agent::Prepare>(&action.message)) {
    checker_.OnPrepareTold(setup_.world, *m);
  } else if (const auto* start_round = std::get_if<agent::StartRound>(&action.message)) {
    checker_.OnStartRoundSent(setup_.world, *start_round);
  } else if (const auto* verdict = std::get_if<agent::Verdict>(&action.message)) {
    checker_.OnVerdictTold(setup_.world, *verdict);
  } else if (const auto* refusal = std::get_if<agent::Refusal>(&action.message)) {
    // Live nodes always answer in the simulator, so only a wrong core gives one up.
    bool is_given_up = refusal->text.find("is given up") != std::string::npos;
    if (is_given_up) stage_.Violate(refusal->text);
  }
  network_.Send(action.peer, &coordinator_face_, action.message);
}

void Node::Do(const agent::HangUp& action) { network_.Close(action.peer, &coordinator_face_); }

void Node::Do(const agent::PersistRecord& action) {
  checker_.OnKept(setup_.world, action.record);
  kept_ = action.record;
}

void Node::Do(const agent::Announcement& action) {
  stage_.Trace(name_, [&] { return "announces " + Words(action, stage_.since_start()); });
}

void Node::Do(const agent::Retire&) {
  stage_.Trace(name_, [] { return "the coordinator retires"; });
  has_retired_ = true;
  network_.CloseAllOf(&coordinator_face_);
  end_->OnRetired(stage_.LocalNow(setup_.host));
  CheckEnd();
}

}  // namespace rankrun::sim
