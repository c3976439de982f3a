#include "tests/cluster/checker.h"

#include <algorithm>

#include "agent/job/exit_codes.h"

namespace rankrun::cluster {
namespace {

std::string Text(int number) { return std::to_string(number); }

}  // namespace

std::string RankFailed(int rank) { return "rank " + Text(rank) + " failed"; }

void Checker::OnStart(int node, const agent::NodePlace& place, TimePoint now) {
  if (lost_) longest_recovery_ = std::max(longest_recovery_, now - *lost_);
  lost_.reset();
  const std::string where = " of attempt " + Text(place.attempt) + " at n" + Text(node);
  for (const auto& [other, attempt] : running_) {
    if (attempt == place.attempt || frozen_.contains(other) || frozen_.contains(node)) continue;
    Violate("workers" + where + " start beside those of attempt " + Text(attempt) + " at n" +
            Text(other));
  }
  if (running_.contains(node)) Violate("workers" + where + " start a second time");
  running_[node] = place.attempt;
  auto [found, is_first] = attempts_.try_emplace(place.attempt, Attempt{.first = place});
  Attempt& attempt = found->second;
  const bool agrees = attempt.first.world_size == place.world_size &&
                      attempt.first.node_count == place.node_count &&
                      attempt.first.master_port == place.master_port;
  if (!agrees) Violate("workers" + where + " have another world or store than others");
  const bool is_new = attempt.node_ranks.insert(place.node_rank).second;
  if (!is_new) Violate("node rank " + Text(place.node_rank) + where + " is given twice");
  if (place.first_rank != place.node_rank * kWorkersPerNode) Violate("wrong ranks" + where);
  if (place.node_rank >= place.node_count) Violate("node rank" + where + " is too high");
}

void Checker::OnBreak() {
  if (!attempts_.empty()) broken_.insert(attempts_.rbegin()->first);
}

void Checker::OnWorkersGone(int node) {
  running_.erase(node);
  frozen_.erase(node);
}

void Checker::OnReport(int node, const agent::AttemptRecord& record) {
  const std::string what = "the report of n" + Text(node) + " on attempt " + Text(record.attempt);
  if (!reports_[node].insert(record.attempt).second) Violate(what + " is the second one");
  const auto culprit = culprits_.find(record.attempt);
  if (culprit == culprits_.end()) return;
  // A node that left, or lost the coordinator, knows its own part.
  const bool is_alone =
      record.exit_code == agent::kExitLostCoordinator || record.exit_code == agent::kExitDrained;
  if (is_alone) return;
  if (record.cause >= record.workers.size()) return Violate(what + " has no cause");
  const std::string named = record.own_cause.empty()
                                ? RankFailed(record.workers[record.cause].global_rank)
                                : record.own_cause;
  const bool may_differ = !record.own_cause.empty() && !has_only_workers_;
  if (!may_differ && named != RankFailed(culprit->second)) {
    Violate(what + " says that " + named + ", but " + RankFailed(culprit->second));
  }
}

void Checker::OnEnd(int node, int exit_code, const std::string& text) {
  if (running_.contains(node)) {
    Violate("n" + Text(node) + " ends with " + Text(exit_code) + " (" + text +
            "), but its workers are alive");
  }
  exit_codes_[node] = exit_code;
  end_texts_[node] = text;
}

bool Checker::HasTold(int node, int attempt) {
  if (reports_[node].contains(attempt)) return true;
  const bool is_last = attempt == attempts_.rbegin()->first;
  return is_last && broken_.contains(attempt) &&
         end_texts_[node] == RankFailed(culprits_.at(attempt));
}

}  // namespace rankrun::cluster
