#include "agent/coordination/gathering.h"

#include <algorithm>
#include <utility>

#include "agent/coordination/mutation.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kRollCallPeriod{10};

// Nodes that could form a round now.
struct Quorum {
  std::vector<Candidate> candidates = {};
  bool others_are_expected = false;
  bool something_runs = false;
};

Candidate CandidateOf(const Roster::Node& node) {
  const Hello& hello = node.hello;
  return {.node = hello.node,
          .incarnation = hello.incarnation,
          .name = hello.name,
          .slots = hello.slots,
          .claimed_rank = hello.node_rank,
          .scheduler_index = hello.node_index,
          .earlier_rank = node.previous_rank,
          .arrival = node.arrival,
          .replaced_after = IsMutated(Mutation::kReplacedStays) ? 0 : node.replaced_after};
}

Quorum CollectCandidates(const Roster& roster) {
  Quorum quorum;
  for (const auto& [id, node] : roster.nodes()) {
    if (node.hello.stuck && !IsMutated(Mutation::kStuckIsWaitedFor))
      continue;  // a stuck process never runs user code again
    if (node.work != NodeState::kNone) quorum.something_runs = true;
    if (node.is_leaving) continue;
    if (!node.peer) {
      quorum.others_are_expected = true;
      continue;
    }
    quorum.candidates.push_back(CandidateOf(node));
  }
  DropDoubleClaims(quorum.candidates);
  return quorum;
}

}  // namespace

void Gathering::Begin(bool waits_for_newcomers, TimePoint now) {
  waits_for_newcomers_ = waits_for_newcomers;
  next_roll_call_ = now + kRollCallPeriod;
  form_at_.reset();
}

std::optional<std::vector<Candidate>> Gathering::TryForm(const Roster& roster, TimePoint now) {
  std::optional<TimePoint> last_call = std::exchange(form_at_, std::nullopt);
  if (roster.nodes().size() < static_cast<size_t>(policy_.min_nodes)) return std::nullopt;
  Quorum quorum = CollectCandidates(roster);
  int count = static_cast<int>(quorum.candidates.size());
  if (count < policy_.min_nodes || quorum.something_runs) return std::nullopt;
  if (now < earliest_start_) {
    form_at_ = earliest_start_;
    return std::nullopt;
  }
  bool is_full = count >= policy_.max_nodes;
  if (!is_full && waits_for_newcomers_) {
    form_at_ = last_call.value_or(now + policy_.last_call);
    if (now < *form_at_) return std::nullopt;
  }
  if (!is_full && !waits_for_newcomers_ && quorum.others_are_expected) return std::nullopt;
  return std::move(quorum.candidates);
}

bool Gathering::TakeRollCall(TimePoint now) {
  if (now < next_roll_call_) return false;
  next_roll_call_ = now + kRollCallPeriod;
  return true;
}

TimePoint Gathering::deadline() const {
  return form_at_ ? std::min(*form_at_, next_roll_call_) : next_roll_call_;
}

}  // namespace rankrun::agent
