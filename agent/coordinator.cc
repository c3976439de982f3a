#include "agent/coordinator.h"

#include <algorithm>
#include <utility>

#include "agent/exit_codes.h"
#include "agent/mutation.h"
#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

constexpr int kMostSlots = 1 << 14;        // of a node: no sum of them overflows
constexpr int kMostCount = 1'000'000'000;  // of what a member has lived through

bool IsCount(int number) { return number >= 0 && number <= kMostCount; }

std::string Nodes(int min, int max) {
  return min == max ? std::to_string(max) : std::to_string(min) + ":" + std::to_string(max);
}

}  // namespace

Coordinator::Coordinator(const CoordinatorPolicy& policy, std::optional<CoordinatorRecord> earlier,
                         TimePoint now)
    : policy_(policy), now_(now), since_(now), next_look_(now), next_roll_(now) {
  if (earlier) {
    record_ = std::move(*earlier);
    GoOn();
  } else {
    Gather(true);
  }
}

// Where the predecessor was stopped.
void Coordinator::GoOn() {
  if (record_.has_lost) not_before_ = now_ + policy_.node_timeout + policy_.kill_bound;
  for (size_t i = 0; i < record_.seats.size(); ++i) {
    const Seat& seat = record_.seats[i];
    Node& node = nodes_[seat.node];
    node.hello.node = seat.node;
    node.hello.incarnation = seat.incarnation;
    node.hello.name = seat.name;
    node.hello.slots = seat.slots;
    node.heard = now_;
    node.seat = static_cast<int>(i);
    if (record_.is_granted) node.work = record_.has_finished ? Work::kDone : Work::kRunning;
  }
  if (record_.verdict) {
    nodes_[policy_.own_node].hello.node = policy_.own_node;  // wants to hear it, too
    return End(*record_.verdict);
  }
  if (record_.has_finished) return BeginFinish();
  if (record_.cause) return BeginStop(Cause(*record_.cause));
  if (!record_.is_granted) return Gather(record_.attempts == 0);
  BeginStop({.text = "the agent of the coordinator's node died", .exit_code = kExitInternalError});
}

std::vector<CoordinatorAction> Coordinator::Step(const CoordinatorEvent& event, TimePoint now) {
  now_ = now;
  if (const auto* said = std::get_if<PeerSaid>(&event)) OnPeerSaid(*said);
  if (const auto* lost = std::get_if<PeerLost>(&event)) OnPeerLost(lost->peer);
  OnTick();
  if (IsMutated(Mutation::kRecordKeptLate)) {
    std::stable_partition(actions_.begin(), actions_.end(), [](const CoordinatorAction& action) {
      return !std::holds_alternative<Keep>(action);
    });
  }
  return std::exchange(actions_, {});
}

TimePoint Coordinator::deadline() const {
  TimePoint first = next_look_;
  if (deadline_) first = std::min(first, *deadline_);
  if (regroup_ && phase_ == JobPhase::kRunning) first = std::min(first, *regroup_);
  if (finish_by_ && phase_ == JobPhase::kRunning) first = std::min(first, *finish_by_);
  if (phase_ == JobPhase::kGathering) {
    first = std::min(first, next_roll_);
    if (form_at_) first = std::min(first, *form_at_);
  }
  return std::max(first, now_);
}

// --- What comes in ---

void Coordinator::OnPeerSaid(const PeerSaid& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) return OnHello(event.peer, *hello);
  Node* node = NodeOf(event.peer);
  if (node == nullptr) return;  // it was told to hang up
  node->heard = now_;
  std::visit([&](const auto& message) { On(*node, message); }, event.message);
}

void Coordinator::OnHello(PeerId peer, const Hello& hello) {
  if (phase_ == JobPhase::kOver && !nodes_.contains(hello.node)) {
    actions_.emplace_back(Tell{peer, *record_.verdict});
    actions_.emplace_back(HangUp{peer});
    return;
  }
  if (!MayTakePart(peer, hello)) return;
  auto [entry, is_new] = nodes_.try_emplace(hello.node);
  Node& node = entry->second;
  if (is_new) node.arrival = ++arrivals_;
  if (node.peer && *node.peer != peer) {
    actions_.emplace_back(HangUp{*node.peer});
    node_of_peer_.erase(*node.peer);
  }
  bool is_next_incarnation = !is_new && hello.incarnation > node.hello.incarnation;
  node.hello = hello;
  node.peer = peer;
  node.heard = now_;
  node_of_peer_[peer] = hello.node;
  Say(node, Waiting{""});
  if (is_next_incarnation && !IsMutated(Mutation::kIncarnationIgnored)) {
    OnNextIncarnation(node);
  } else {
    OnBack(node);
    if (hello.stuck) NoteStuck(node);
  }
}

bool Coordinator::MayTakePart(PeerId peer, const Hello& hello) {
  auto refuse = [&](const std::string& text) {
    actions_.emplace_back(Tell{peer, Refusal{text}});
    actions_.emplace_back(HangUp{peer});
    return false;
  };
  auto known = nodes_.find(hello.node);
  if (known != nodes_.end() && hello.incarnation < known->second.hello.incarnation) {
    return refuse("a newer agent of this node has joined");
  }
  if (IsGivenUp(hello)) return refuse("this node was given up: it did not stop or make ready");
  if (hello.min_nodes != policy_.min_nodes || hello.max_nodes != policy_.max_nodes) {
    return refuse("this node was started with --nnodes " + Nodes(hello.min_nodes, hello.max_nodes) +
                  ", the job has " + Nodes(policy_.min_nodes, policy_.max_nodes));
  }
  bool is_sound = hello.slots >= 1 && hello.slots <= kMostSlots && IsCount(hello.round) &&
                  IsCount(hello.attempts) && IsCount(hello.incarnation) && IsCount(hello.stop_ms);
  if (!is_sound) {
    return refuse("this node's hello makes no sense");
  }
  if (!hello.node_rank || known != nodes_.end()) return true;
  for (const auto& [id, other] : nodes_) {
    if (other.peer && other.hello.node_rank == hello.node_rank) {
      return refuse("node rank " + std::to_string(*hello.node_rank) + " is claimed by " +
                    hello.name + " and by " + other.hello.name + ", which came first");
    }
  }
  return true;
}

// The word of its successor proves that the agent has ended, and all below it.
void Coordinator::OnNextIncarnation(Node& node) {
  node.work = Work::kNone;
  if (phase_ == JobPhase::kOver) return Say(node, *record_.verdict);
  if (!IsIn(node)) return TryForm();
  if (phase_ == JobPhase::kPreparing) return Gather(waits_for_newcomers_);
  Cause cause{.text = "the agent of node " + node.hello.name + " died",
              .exit_code = kExitInternalError};
  if (phase_ == JobPhase::kRunning) return BeginStop(cause);
  Improve(cause);
  Settle(node, Work::kNone);  // it holds nothing up any more
}

// A new node, or one whose connection broke.
void Coordinator::OnBack(Node& node) {
  const Hello& hello = node.hello;
  bool runs = hello.work == Work::kRunning || hello.work == Work::kStopping;
  if (phase_ == JobPhase::kOver) return Say(node, *record_.verdict);
  if (hello.work == Work::kFinished && !IsIn(node)) {  // it knows of a success that we don't
    if (!record_.is_granted) return End({0, ""});
    node.is_leaving = true;
  }
  NoteOtherWorld(hello);
  bool of_this_round = IsIn(node) && hello.round == record_.round;
  if (!of_this_round && runs) {  // of a round that is over
    node.work = Work::kStopping;
    if (!node.answer_by) node.answer_by = StopBy(node);
    if (phase_ == JobPhase::kPreparing && !hello.stuck) Gather(waits_for_newcomers_);
    return Say(node, Stop{hello.round, "the job went on without this node", false});
  }
  switch (phase_) {
    case JobPhase::kGathering:
    case JobPhase::kPausing:
      node.work = Work::kNone;
      return TryForm();
    case JobPhase::kPreparing:
      return IsIn(node) ? Gather(waits_for_newcomers_) : void();
    case JobPhase::kRunning:
      return OnBackWhileRunning(node, of_this_round);
    case JobPhase::kStopping:
      if (!IsIn(node)) return;
      if (of_this_round && hello.failure) Improve(*hello.failure);
      if (of_this_round && runs) return OrderStop(node);
      return Settle(node, Work::kNone);
    case JobPhase::kFinishing:
      if (!IsIn(node)) return;
      if (of_this_round && hello.work == Work::kDone) return Say(node, Finish{record_.round});
      return Settle(node, Work::kNone);
    case JobPhase::kOver:
      return;
  }
}

void Coordinator::OnBackWhileRunning(Node& node, bool of_this_round) {
  const Hello& hello = node.hello;
  TellIfSpare(node);
  if (!IsIn(node)) return LetIn();
  if (of_this_round && hello.work == Work::kRunning) return;
  if (of_this_round && hello.work == Work::kDone) return NoteDone(node);
  if (of_this_round && hello.work == Work::kPrepared) return Say(node, GoFor(node));
  bool is_stopping = of_this_round && hello.work == Work::kStopping;
  node.work = is_stopping ? Work::kStopping : Work::kNone;
  BeginStop(hello.failure.value_or(Cause{.text = "node " + hello.name + " had lost the coordinator",
                                         .by_itself = false,
                                         .charges_budget = false}));
}

// Of a coordinator that this one knows nothing of, as others may be.
void Coordinator::NoteOtherWorld(const Hello& hello) {
  bool is_news = hello.round > std::max(record_.round, newest_round_) &&
                 !IsMutated(Mutation::kWorldBeginsAnew);
  if (!is_news) return;
  newest_round_ = hello.round;
  record_.attempts = std::max(record_.attempts, hello.attempts);
  not_before_ = now_ + policy_.node_timeout + policy_.kill_bound;
  if (phase_ == JobPhase::kPreparing) Gather(waits_for_newcomers_);
}

void Coordinator::OnPeerLost(PeerId peer) {
  Node* node = NodeOf(peer);
  node_of_peer_.erase(peer);
  if (node == nullptr) return;
  node->peer.reset();
  if (IsMutated(Mutation::kLinkLossIsProof)) return Lose(node->hello.node);
  if (node->is_leaving && node->work == Work::kNone) {
    Node gone = std::move(nodes_.extract(node->hello.node).mapped());
    Settle(gone, Work::kNone);
  } else if (IsIn(*node) && phase_ == JobPhase::kPreparing) {
    Gather(waits_for_newcomers_);
  }
}

void Coordinator::On(Node& node, const Beat& message) {
  if (message.unfinished && phase_ == JobPhase::kRunning) node.unfinished = message.unfinished;
  Say(node, Beat{message.number});
}

void Coordinator::On(Node& node, const Prepared& message) {
  bool is_ours = message.round == record_.round || IsMutated(Mutation::kStaleWordCounts);
  if (phase_ != JobPhase::kPreparing || !IsIn(node) || !is_ours) return;
  if (*node.seat == 0) go_.store_port = message.store_port;
  node.own_addresses = message.own_addresses;
  Settle(node, Work::kPrepared);
}

void Coordinator::On(Node& node, const Failed& message) {
  if (!IsIn(node) || message.round != record_.round) return;
  if (phase_ == JobPhase::kStopping) return Improve(message.cause);
  if (phase_ != JobPhase::kRunning && phase_ != JobPhase::kPreparing) return;
  node.work = phase_ == JobPhase::kRunning ? Work::kStopping : Work::kNone;
  BeginStop(message.cause);
}

void Coordinator::On(Node& node, const Done& message) {
  bool counts = phase_ == JobPhase::kRunning && IsIn(node) && message.round == record_.round;
  if (counts) NoteDone(node);
}

void Coordinator::On(Node& node, const Stopped& message) {
  node.hello.stuck.reset();
  node.answer_by.reset();
  bool of_this_round = IsIn(node) && message.round == record_.round;
  bool is_owed = phase_ == JobPhase::kStopping || phase_ == JobPhase::kFinishing;
  if (is_owed && of_this_round) return Settle(node, Work::kNone);
  if (phase_ == JobPhase::kOver) {  // it has heard the verdict
    node.work = Work::kNone;
    node.is_leaving = true;
    return;
  }
  if (phase_ == JobPhase::kRunning && of_this_round) {
    node.work = Work::kNone;
    return BeginStop({.text = "node " + node.hello.name + " had lost the coordinator",
                      .by_itself = false,
                      .charges_budget = false});
  }
  if (IsIn(node) && phase_ != JobPhase::kPausing) return;
  node.work = Work::kNone;  // of an old round
  if (phase_ == JobPhase::kGathering) TryForm();
  if (phase_ == JobPhase::kRunning) LetIn();
}

void Coordinator::On(Node& node, const FinishSeen& message) {
  bool counts = phase_ == JobPhase::kFinishing && IsIn(node) && message.round == record_.round;
  if (counts) Settle(node, Work::kFinished);
}

void Coordinator::On(Node& node, const Leave& message) {
  node.is_leaving = true;
  Cause cause{.text = "node " + node.hello.name + " leaves: " + message.why,
              .exit_code = kExitDrained,
              .by_itself = false,
              .is_hopeless = node.hello.node == policy_.own_node,
              .charges_budget = IsMutated(Mutation::kLeaveIsFailure)};
  leave_ = cause.text;
  if (cause.is_hopeless) return EndBy(node, cause);
  bool nothing_runs = phase_ == JobPhase::kGathering || phase_ == JobPhase::kPreparing ||
                      phase_ == JobPhase::kPausing;
  if (nothing_runs && EndsDrained()) return;
  if (phase_ == JobPhase::kGathering) return TryForm();
  if (!IsIn(node)) return;
  if (phase_ == JobPhase::kPreparing) return Gather(waits_for_newcomers_);
  if (phase_ != JobPhase::kRunning) return;
  node.work = Work::kStopping;
  BeginStop(cause);
}

void Coordinator::On(Node& node, const Close& message) {
  node.is_leaving = true;  // it does not stay for the verdict
  EndBy(node, message.cause);
}

// The job is to end, for a reason that no new attempt would change.
void Coordinator::EndBy(Node& node, Cause cause) {
  cause.is_hopeless = true;
  switch (phase_) {
    case JobPhase::kGathering:
    case JobPhase::kPausing:
      return End({cause.exit_code, cause.text});
    case JobPhase::kPreparing:
    case JobPhase::kRunning:
      if (node.work == Work::kRunning) node.work = Work::kStopping;
      return BeginStop(cause);
    case JobPhase::kStopping:
      if (record_.cause->is_hopeless) return;
      record_.cause = cause;
      return Persist();
    case JobPhase::kFinishing:
    case JobPhase::kOver:
      return;
  }
}

// What others did by themselves is no answer to a lost peer.
void Coordinator::Improve(const Cause& cause) {
  if (phase_ != JobPhase::kStopping || record_.cause->is_hopeless) return;
  if (cause.by_itself && !record_.cause->by_itself) record_.cause = cause;
}

// A job that its nodes have left for the better part is over.
bool Coordinator::EndsDrained() {
  auto stays = [](const auto& entry) { return !entry.second.is_leaving; };
  bool too_few = std::ranges::count_if(nodes_, stays) < policy_.min_nodes;
  bool is_drained = too_few && !leave_.empty() && record_.attempts > 0;
  if (is_drained) {
    End({kExitDrained, leave_ + "; fewer nodes are left than --nnodes wants"});
  }
  return is_drained;
}

void Coordinator::TellIfSpare(const Node& node) {
  bool has_room = record_.seats.size() < static_cast<size_t>(policy_.max_nodes);
  if (IsIn(node) || node.is_leaving || has_room) return;
  Say(node, Waiting{"the job has its " + std::to_string(policy_.max_nodes) +
                    " nodes; this one is a spare"});
}

// "ranks 4-7 on n2": those that it has not told as finished
std::string Coordinator::UnfinishedText(const Node& node) const {
  const Seat& seat = record_.seats[static_cast<size_t>(*node.seat)];
  std::vector<int> ranks;
  for (int i = 0; i < seat.slots; ++i) {
    bool is_unfinished = !node.unfinished || std::ranges::count(*node.unfinished, i) > 0;
    if (is_unfinished) ranks.push_back(seat.first_rank + i);
  }
  if (ranks.empty()) return seat.name;
  return (ranks.size() == 1 ? "rank " : "ranks ") + FormatRanks(ranks) + " on " + seat.name;
}

Coordinator::Node* Coordinator::NodeOf(PeerId peer) {
  auto found = node_of_peer_.find(peer);
  return found == node_of_peer_.end() ? nullptr : &nodes_.at(found->second);
}

void Coordinator::Say(const Node& node, CoordinatorMessage message) {
  if (node.peer) actions_.emplace_back(Tell{*node.peer, std::move(message)});
}

}  // namespace rankrun::agent
