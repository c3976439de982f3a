#include <algorithm>
#include <limits>
#include <utility>

#include "agent/coordinator.h"
#include "agent/exit_codes.h"
#include "agent/mutation.h"
#include "agent/store_clients.h"
#include "base/format.h"
#include "base/roll_call.h"

// The second half of Coordinator: rounds, and what time does to them.

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kRollCallPeriod{10};
// How often silent nodes are looked for.
constexpr int kLooksPerTimeout = 10;

Candidate CandidateOf(const Hello& hello) {
  return {.node = hello.node,
          .incarnation = hello.incarnation,
          .name = hello.name,
          .slots = hello.slots,
          .claimed_rank = hello.node_rank,
          .scheduler_index = hello.node_index,
          .earlier_rank = {}};
}

}  // namespace

// --- Rounds ---

void Coordinator::Enter(JobPhase phase, std::optional<Duration> at_most) {
  phase_ = phase;
  since_ = now_;
  deadline_.reset();
  if (at_most) deadline_ = now_ + *at_most;
}

void Coordinator::Gather(bool waits_for_newcomers) {
  Enter(JobPhase::kGathering, policy_.join_timeout);
  waits_for_newcomers_ = waits_for_newcomers;
  next_roll_ = now_ + kRollCallPeriod;
  form_at_.reset();
  awaited_ = 0;
  for (auto& [id, node] : nodes_) {
    if (node.seat) node.earlier = node.seat;
    node.seat.reset();
    node.is_awaited = false;
    if (node.work == Work::kPrepared || node.work == Work::kDone) node.work = Work::kNone;
    if (node.work == Work::kNone) node.answer_by.reset();
  }
  TryForm();
}

void Coordinator::TryForm() {
  if (phase_ != JobPhase::kGathering) return;
  bool too_few = nodes_.size() < static_cast<size_t>(policy_.min_nodes);
  if (too_few) return form_at_.reset();
  Muster muster = CallUp();
  int count = static_cast<int>(muster.candidates.size());
  if (count < policy_.min_nodes || muster.something_runs) return form_at_.reset();
  if (now_ < not_before_) {
    form_at_ = not_before_;
    return;
  }
  if (count < policy_.max_nodes && waits_for_newcomers_) {
    if (!form_at_) form_at_ = now_ + policy_.last_call;
    if (now_ < *form_at_) return;
  }
  if (count < policy_.max_nodes && !waits_for_newcomers_ && muster.others_are_expected) {
    return form_at_.reset();
  }
  Form(std::move(muster.candidates));
}

Coordinator::Muster Coordinator::CallUp() const {
  Muster muster;
  for (const auto& [id, node] : nodes_) {
    if (node.hello.stuck && !IsMutated(Mutation::kStuckIsWaitedFor))
      continue;  // what is left there never runs again
    if (node.work != Work::kNone) muster.something_runs = true;
    if (node.is_leaving) continue;
    if (!node.peer) {
      muster.others_are_expected = true;
      continue;
    }
    Candidate candidate = CandidateOf(node.hello);
    candidate.earlier_rank = node.earlier;
    candidate.arrival = node.arrival;
    muster.candidates.push_back(std::move(candidate));
  }
  DropDoubleClaims(muster.candidates);
  return muster;
}

void Coordinator::Form(std::vector<Candidate> candidates) {
  record_.seats = SeatNodes(std::move(candidates), policy_.max_nodes);
  record_.round = std::max(record_.round, newest_round_) + 1;
  record_.is_granted = false;
  record_.cause.reset();
  Enter(JobPhase::kPreparing, std::nullopt);
  Persist();
  go_ = Go{.round = record_.round,
           .store_addresses = nodes_.at(record_.seats.front().node).hello.addresses};
  Prepare message{.round = record_.round,
                  .attempt = record_.attempts,
                  .node_count = static_cast<int>(record_.seats.size()),
                  .world_size = WorldSizeOf(record_.seats),
                  .max_restarts = policy_.restart.max_restarts,
                  .record = DigestOf(record_.round, record_.seats)};
  for (size_t i = 0; i < record_.seats.size(); ++i) {
    const Seat& seat = record_.seats[i];
    Node& node = nodes_.at(seat.node);
    node.seat = static_cast<int>(i);
    node.is_awaited = true;
    node.answer_by = now_ + policy_.answer_patience;
    awaited_ += 1;
    message.node_rank = static_cast<int>(i);
    message.first_rank = seat.first_rank;
    Say(node, message);
  }
}

void Coordinator::Grant() {
  record_.is_granted = true;
  record_.attempts += 1;
  record_.has_lost = false;
  leave_.clear();
  Enter(JobPhase::kRunning, std::nullopt);
  regroup_.reset();
  finish_by_.reset();
  Persist();
  for (const Seat& seat : record_.seats) {
    Node& node = nodes_.at(seat.node);
    node.work = Work::kRunning;
    node.unfinished.reset();
    Say(node, GoFor(node));
  }
  AwaitAll();
  for (const auto& [id, node] : nodes_) TellIfSpare(node);
  LetIn();
}

Go Coordinator::GoFor(const Node& node) const {
  Go go = go_;
  if (*node.seat != 0) return go;
  std::vector<const std::vector<std::string>*> addresses;
  for (const auto& [id, other] : nodes_) {
    if (IsIn(other)) addresses.push_back(&other.own_addresses);
  }
  go.store_clients = AddressesOfAll(addresses);
  return go;
}

// All nodes of the round owe an answer now.
void Coordinator::AwaitAll() {
  awaited_ = 0;
  for (auto& [id, node] : nodes_) {
    node.is_awaited = IsIn(node);
    if (node.is_awaited) awaited_ += 1;
  }
}

// While a round runs: a node that is free makes it larger, if there is room.
void Coordinator::LetIn() {
  int room = policy_.max_nodes - static_cast<int>(record_.seats.size());
  std::string newcomer;
  int free = 0;
  for (const auto& [id, node] : nodes_) {
    bool is_free = !IsIn(node) && node.peer && !node.is_leaving && node.work == Work::kNone;
    if (!is_free || IsClaimTaken(node.hello)) continue;
    newcomer = node.hello.name;
    free += 1;
  }
  if (room == 0 || free == 0 || finish_by_) return regroup_.reset();
  if (free >= room) regroup_ = now_;
  if (!regroup_) regroup_ = now_ + policy_.last_call;
  if (now_ < *regroup_) return;
  BeginStop({.text = "node " + newcomer + " joins", .by_itself = false, .charges_budget = false});
}

bool Coordinator::IsClaimTaken(const Hello& hello) const {
  if (!hello.node_rank) return false;
  return std::ranges::any_of(nodes_, [&](const auto& entry) {
    return IsIn(entry.second) && entry.second.hello.node_rank == hello.node_rank;
  });
}

void Coordinator::NoteDone(Node& node) {
  if (!finish_by_) finish_by_ = now_ + policy_.finish_timeout;
  Settle(node, Work::kDone);
}

void Coordinator::BeginStop(const Cause& cause) {
  lasted_ = now_ - since_;
  record_.cause = cause;
  lost_meanwhile_.clear();
  Enter(JobPhase::kStopping, std::nullopt);
  AwaitAll();
  for (auto& [id, node] : nodes_) {
    if (!IsIn(node)) continue;
    node.answer_by = StopBy(node);
    if (node.work == Work::kNone) {
      node.is_awaited = false;
      node.answer_by.reset();
      awaited_ -= 1;
    } else if (node.work != Work::kStopping) {
      OrderStop(node);
    }
  }
  Persist();  // nobody has to wait for it
  if (awaited_ == 0) Resolve();
}

void Coordinator::OrderStop(Node& node) {
  node.work = Work::kStopping;
  const Cause& cause = *record_.cause;
  bool is_failure = cause.by_itself || cause.charges_budget;
  Say(node, Stop{record_.round, cause.text, is_failure});
}

void Coordinator::Settle(Node& node, Work work) {
  node.work = work;
  node.answer_by.reset();
  if (!std::exchange(node.is_awaited, false)) return;
  awaited_ -= 1;
  bool is_early = IsMutated(Mutation::kGoBeforeAllPrepared) && phase_ == JobPhase::kPreparing;
  if (awaited_ > (is_early ? 1 : 0)) return;
  if (phase_ == JobPhase::kPreparing) return Grant();
  if (phase_ == JobPhase::kRunning) return BeginFinish();
  if (phase_ == JobPhase::kStopping) return Resolve();
  if (phase_ == JobPhase::kFinishing) return End({0, ""});
}

// Nothing of the round is left: what now?
void Coordinator::Resolve() {
  const Cause cause = *std::exchange(record_.cause, std::nullopt);
  bool was_granted = std::exchange(record_.is_granted, false);
  std::erase_if(nodes_,
                [](const auto& entry) { return entry.second.is_leaving && !entry.second.peer; });
  outcome_ = {.cause = cause.text, .reason = cause.text, .exit_code = cause.exit_code};
  if (cause.rank >= 0) outcome_.rank = cause.rank;
  if (cause.is_hopeless) return End({cause.exit_code, cause.text});
  if (EndsDrained()) return;
  bool is_failure = was_granted && cause.by_itself;
  if (!is_failure && !cause.charges_budget) {
    outcome_.restarts = outcome_.is_free = true;
    outcome_.reason = "at once" + (lost_meanwhile_.empty() ? "" : "; " + lost_meanwhile_);
    return Gather(false);
  }
  RestartPolicy policy = policy_.restart;
  if (IsMutated(Mutation::kBudgetOffByOne)) policy.max_restarts += 1;
  if (!cause.charges_budget) policy.max_restarts = std::numeric_limits<int>::max();
  RestartDecision decision = DecideRestart(policy, record_.history, lasted_);
  if (!cause.charges_budget) decision.next.restarts = record_.history.restarts;
  record_.history = decision.next;
  outcome_.restarts = decision.restarts;
  outcome_.is_free = !cause.charges_budget;
  outcome_.reason = decision.reason;
  outcome_.restart_number = decision.next.restarts;
  if (!decision.restarts) return End({cause.exit_code, cause.text});
  if (!lost_meanwhile_.empty()) outcome_.reason += "; " + lost_meanwhile_;
  Persist();
  if (decision.pause == Duration::zero()) return Gather(false);
  Enter(JobPhase::kPausing, decision.pause);
}

// --- The end ---

void Coordinator::BeginFinish() {
  Enter(JobPhase::kFinishing, policy_.node_timeout);
  record_.has_finished = true;
  Persist();
  if (IsMutated(Mutation::kSuccessInOnePhase)) return End({0, ""});
  AwaitAll();
  for (auto& [id, node] : nodes_) {
    if (IsIn(node)) Say(node, Finish{record_.round});
  }
}

void Coordinator::End(Verdict verdict) {
  Enter(JobPhase::kOver, policy_.node_timeout);
  record_.verdict = std::move(verdict);
  Persist();
  for (auto& [id, node] : nodes_) Say(node, *record_.verdict);
}

// --- Time ---

void Coordinator::OnTick() {
  if (now_ >= next_look_) {
    LoseSilentNodes();
    GiveUpLateNodes();
    next_look_ = now_ + policy_.node_timeout / kLooksPerTimeout;
  }
  bool is_late = deadline_ && now_ >= *deadline_;
  switch (phase_) {
    case JobPhase::kGathering:
      if (is_late) return GiveUpGathering();
      if (form_at_ && now_ >= *form_at_) TryForm();
      if (phase_ == JobPhase::kGathering && now_ >= next_roll_) CallTheRoll();
      return;
    case JobPhase::kRunning:
      if (regroup_ && now_ >= *regroup_) LetIn();
      if (phase_ == JobPhase::kRunning && finish_by_ && now_ >= *finish_by_) GiveUpFinishing();
      return;
    case JobPhase::kPausing:
      if (is_late) Gather(false);
      return;
    case JobPhase::kFinishing:
      if (is_late) End({0, ""});
      return;
    case JobPhase::kOver:
      if ((is_late || nodes_.empty()) && !std::exchange(has_retired_, true)) {
        actions_.emplace_back(Retire{});
        deadline_.reset();
      }
      return;
    case JobPhase::kPreparing:
    case JobPhase::kStopping:
      return;
  }
}

void Coordinator::GiveUpGathering() {
  bool had_begun = record_.attempts > 0;
  End({had_begun ? kExitTooFewNodes : kExitNoRendezvous,
       "gave up waiting for nodes: " + RollText()});
}

void Coordinator::GiveUpFinishing() {
  std::string missing;
  for (const auto& [id, node] : nodes_) {
    if (!node.is_awaited) continue;
    if (!missing.empty()) missing += ", ";
    missing += UnfinishedText(node);
  }
  BeginStop({.text = "not finished " + FormatSeconds(policy_.finish_timeout) +
                     " after the first node (--finish-timeout): " + missing,
             .exit_code = kExitHang,
             .is_hopeless = true});
}

void Coordinator::CallTheRoll() {
  next_roll_ = now_ + kRollCallPeriod;
  std::string text = RollText();
  for (const auto& [id, node] : nodes_) Say(node, Waiting{text});
}

// "1 of 2 nodes are here after 10.0 s (n1)"
std::string Coordinator::RollText() const {
  constexpr size_t kMostNames = 8;
  int here = 0;
  std::string names;
  size_t named = 0;
  for (const auto& [id, node] : nodes_) {
    if (!node.peer || node.is_leaving || node.hello.stuck) continue;
    here += 1;
    if (++named > kMostNames) continue;
    if (!names.empty()) names += ", ";
    names += node.hello.name;
  }
  if (named > kMostNames) names += ", ...";
  return std::to_string(here) + " of " + std::to_string(policy_.min_nodes) +
         (policy_.min_nodes == 1 ? " node is" : " nodes are") + " here after " +
         FormatSeconds(now_ - since_) + (names.empty() ? "" : " (" + names + ")");
}

}  // namespace rankrun::agent
