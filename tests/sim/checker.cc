#include "tests/sim/checker.h"

#include <algorithm>

#include "agent/job/exit_codes.h"

namespace rankrun::sim {
namespace {

std::string Text(int number) { return std::to_string(number); }

}  // namespace

void Checker::OnPrepareTold(int world, const agent::Prepare& message) {
  Round& round = rounds_[{world, message.round}];
  // A member that has come from another world may have prepared for a round of this number.
  bool is_new = round.record.empty();
  if (is_new) {
    round = {.record = message.record,
             .attempt = message.attempt,
             .node_count = message.node_count,
             .world_size = message.world_size};
  }
  bool is_same = round.record == message.record && round.attempt == message.attempt &&
                 round.node_count == message.node_count && round.world_size == message.world_size;
  if (!is_same) stage_.Violate("two records of round " + Text(message.round));
  bool is_unique = round.ranks.try_emplace(message.node_rank, message.first_rank).second;
  bool is_dense = message.node_rank >= 0 && message.node_rank < message.node_count;
  if (!is_unique || !is_dense)
    stage_.Violate("node rank " + Text(message.node_rank) + " twice or too high");
  if (message.node_count < stage_.plan.policy.min_nodes ||
      message.node_count > stage_.plan.policy.max_nodes) {
    stage_.Violate("a round of " + Text(message.node_count) + " nodes");
  }
}

void Checker::OnStartRoundSent(int world, const agent::StartRound& message) {
  if (!granted_.insert({world, message.round}).second) return;
  int attempt = rounds_[{world, message.round}].attempt;
  auto [last, is_first] = last_attempt_.try_emplace(world, attempt);
  if (!is_first && attempt <= last->second) stage_.Violate("attempts do not increase");
  last->second = attempt;
  int most = stage_.plan.policy.restart.max_restarts;
  if (is_pure_ && rounds() > most + 1) stage_.Violate("more restarts than the budget allows");
}

void Checker::OnKept(int world, const agent::CoordinatorRecord& record) {
  if (record.has_finished) finish_.try_emplace(world, stage_.time.now());
  if (record.history.restarts > stage_.plan.policy.restart.max_restarts) {
    stage_.Violate("the budget is exceeded");
  }
  if (record.history.restarts > failures_) stage_.Violate("a restart without a failure is charged");
}

void Checker::OnVerdictTold(int world, const agent::Verdict& message) {
  auto [verdict, is_first] = verdicts_.try_emplace(world, message);
  if (!(verdict->second == message)) stage_.Violate("two verdicts");
  if (!is_first) return;
  bool is_failure = message.exit_code == 7 || message.exit_code == agent::kExitInternalError;
  if (is_failure && failures_ <= stage_.plan.policy.restart.max_restarts) {
    stage_.Violate("the job failed although its budget is not used up");
  }
  if (message.exit_code == agent::kExitDrained && !has_partitions_) {
    int staying = count_staying_(world);
    if (staying >= stage_.plan.policy.min_nodes) stage_.Violate("a leave closes the job");
    if (leaving_.empty()) stage_.Violate("drained, but no node has left");
  }
  if (message.exit_code == 0 && world == 1) CheckSuccess(world);
}

// A node keeps the first verdict that it received. When its last worker is gone,
// it may be linked to the coordinator of another world.
void Checker::OnVerdictReceived(const Place& place, const agent::Verdict& message) {
  exit_codes_[place.node].insert(message.exit_code);
  auto running = running_.find(place.node);
  if (running == running_.end() || message.exit_code != 0) return;
  // No job succeeds while workers of its last round run. These are of an earlier round,
  // which went on without their node, or of another world.
  RoundId round(running->second.world, running->second.round);
  auto next = granted_.upper_bound(round);
  bool is_last = next == granted_.end() || next->first != round.first;
  if (round.first != place.world || !is_last)
    exit_codes_[place.node].insert(agent::kExitInternalError);
}

// The coordinator announces success only after every node has confirmed Finish.
void Checker::CheckSuccess(int world) {
  auto finish = finish_.find(world);
  if (finish == finish_.end()) return stage_.Violate("success is announced without a finish phase");
  if (has_partitions_) return;
  if (stage_.time.now() - finish->second >= stage_.plan.policy.node_timeout) return;
  for (int node : rounds_[*granted_.rbegin()].starters) {
    bool is_excused = gone_.contains(node) || leaving_.contains(node);
    if (!is_excused && !finish_seen_[world].contains(node)) {
      stage_.Violate("success is announced before n" + Text(node) + " has confirmed it");
    }
  }
}

void Checker::OnSent(const Place& place, const agent::MemberMessage& message,
                     bool workers_are_alive) {
  if (const auto* prepared = std::get_if<agent::Prepared>(&message)) {
    if (workers_are_alive) stage_.Violate("prepared, but workers are alive");
    rounds_[{place.world, prepared->round}].prepared.insert(place.node);
  }
  bool is_stopped = std::holds_alternative<agent::Stopped>(message);
  if (is_stopped && workers_are_alive) stage_.Violate("stopped, but workers are alive");
  bool has_seen = std::holds_alternative<agent::FinishSeen>(message);
  if (!has_seen) return;
  finish_seen_[place.world].insert(place.node);
  knows_success_.insert(place.node);
}

void Checker::OnMakeReady(const Place& place, const agent::Prepare&) {
  if (running_.contains(place.node)) stage_.Violate("prepares while its workers are alive");
}

void Checker::OnStart(const Place& place, int number) {
  CheckOverlap(place, number);
  bool has_finished = finish_seen_.contains(place.world) && !StoodStill(place.host);
  if (has_finished) stage_.Violate("a finished job runs again");
  Round& round = rounds_[{place.world, number}];
  if (static_cast<int>(round.prepared.size()) < round.node_count) {
    stage_.Violate("workers start before all nodes have prepared");
  }
  if (!round.starters.insert(place.node).second) stage_.Violate("a round starts twice on a node");
  running_[place.node] = {place.host, place.world, number};
  running_nodes_[{place.world, number}] += 1;
}

void Checker::OnWorkersGone(int node) {
  auto found = running_.find(node);
  if (found == running_.end()) return;
  auto count = running_nodes_.find({found->second.world, found->second.round});
  if (--count->second == 0) running_nodes_.erase(count);
  running_.erase(found);
}

// A machine whose clock stood still as well cannot know that a lease is over.
bool Checker::StoodStill(int host) {
  const agent::CoordinatorPolicy& policy = stage_.plan.policy;
  TimePoint woke_up = stage_.hosts[host].long_frozen_until;
  return stage_.time.now() < woke_up + policy.node_timeout + policy.kill_bound;
}

void Checker::CheckOverlap(const Place& place, int round) {
  const agent::CoordinatorPolicy& policy = stage_.plan.policy;
  TimePoint now = stage_.time.now();
  bool is_alone =
      running_nodes_.empty() ||
      (running_nodes_.size() == 1 && running_nodes_.begin()->first == RoundId(place.world, round));
  if (is_alone) return;
  for (const auto& [node, other] : running_) {
    if (other.world == place.world && other.round == round) continue;
    if (StoodStill(other.host) || StoodStill(place.host)) continue;
    // A coordinator without a record cannot know of workers whose agents have not
    // reported to it yet; these workers end with their lease.
    auto over = world_over_.find(other.world);
    bool is_of_lost_world = other.world != place.world && over != world_over_.end() &&
                            now < over->second + policy.node_timeout + policy.kill_bound;
    if (is_of_lost_world) continue;
    stage_.Violate("workers of round " + Text(round) + " start at n" + Text(place.node) +
                   " beside those of round " + Text(other.round) + " at n" + Text(node));
  }
}

void Checker::OnEnd(const Place& place, int exit_code, bool workers_are_alive) {
  if (workers_are_alive) stage_.Violate("a node is over, but its workers are alive");
  bool is_known = exit_code == agent::kExitLostCoordinator || exit_code == agent::kExitNoRendezvous;
  if (exit_code == agent::kExitDrained) is_known |= leaving_.contains(place.node);
  is_known |= closes_.contains(exit_code);
  bool knows_success = knows_success_.contains(place.node);
  if (exit_code == 0) is_known |= knows_success;
  is_known |= exit_codes_[place.node].contains(exit_code);
  if (!is_known) stage_.Violate("n" + Text(place.node) + " ends with " + Text(exit_code));
}

int Checker::verdict() const {
  return verdicts_.empty() ? -1 : verdicts_.rbegin()->second.exit_code;
}

}  // namespace rankrun::sim
