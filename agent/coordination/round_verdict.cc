#include "agent/coordination/round_verdict.h"

#include <limits>

#include "agent/coordination/mutation.h"

namespace rankrun::agent {
namespace {

// Longest time between the end of a node and the failure of a worker elsewhere that noticed it.
constexpr std::chrono::seconds kSameTime{1};

}  // namespace

void RoundVerdict::ReplaceIfBetter(const Cause& cause) {
  if (cause_.is_fatal || !cause.is_primary || cause_.is_primary) return;
  cause_ = AsFailure(cause);
}

bool RoundVerdict::PreferLoss(uint64_t node, TimePoint since, const Cause& loss) {
  bool is_elsewhere = round_.failed_node && *round_.failed_node != node;
  bool is_same_time = since <= round_.stopped + kSameTime;
  if (!is_elsewhere || !is_same_time || cause_.is_fatal) {
    ReplaceIfBetter(loss);
    return false;
  }
  cause_ = AsFailure(loss);
  round_.failed_node.reset();
  return true;
}

bool RoundVerdict::EndWith(const Cause& cause) {
  if (cause_.is_fatal) return false;
  cause_ = cause;
  cause_.is_fatal = true;
  return true;
}

bool RoundVerdict::RecordLoss(const Cause& loss) {
  if (cause_.text == loss.text || cause_.is_fatal) return false;
  if (!losses_.empty()) losses_ += "; ";
  losses_ += loss.text;
  if (!loss.is_fatal) return false;
  int rank = cause_.rank;
  std::string earlier = cause_.text;
  cause_ = loss;
  cause_.rank = rank;
  cause_.text += "; before that: " + earlier;
  return true;
}

void RoundVerdict::NoteNode(int attempt, const std::string& node,
                            const std::vector<FailureRow>& earlier) {
  attempt_ = attempt;
  cause_node_ = node;
  earlier_failures_ = earlier;
}

RoundOutcome RoundVerdict::EndOfJob() const {
  RoundOutcome outcome{.cause = cause_.text,
                       .reason = cause_.text,
                       .exit_code = cause_.exit_code,
                       .is_fatal = cause_.is_fatal,
                       .attempt = attempt_,
                       .cause_node = cause_node_,
                       .earlier_failures = earlier_failures_};
  if (cause_.rank >= 0) outcome.rank = cause_.rank;
  return outcome;
}

std::string RoundVerdict::WithLosses(const std::string& reason) const {
  return losses_.empty() ? reason : reason + "; " + losses_;
}

RoundVerdict::Next RoundVerdict::Decide(const RestartPolicy& policy,
                                        const RestartHistory& history) const {
  Next next{.outcome = EndOfJob(), .history = {}};
  bool is_free = !cause_.consumes_restart;
  bool is_failure = round_.was_started && cause_.is_primary;
  next.outcome.is_free = is_free;
  if (is_free && !is_failure) {
    next.outcome.restarts = true;
    next.outcome.reason = WithLosses("at once");
    return next;
  }
  RestartPolicy allowed = policy;
  if (IsMutated(Mutation::kBudgetOffByOne)) allowed.max_restarts += 1;
  if (is_free) allowed.max_restarts = std::numeric_limits<int>::max();
  RestartDecision decision = DecideRestart(allowed, history, round_.lasted);
  if (is_free) decision.next.restarts = history.restarts;
  next.history = decision.next;
  next.pause = decision.pause;
  next.outcome.restarts = decision.restarts;
  next.outcome.restart_number = decision.next.restarts;
  next.outcome.reason = decision.restarts ? WithLosses(decision.reason) : decision.reason;
  return next;
}

}  // namespace rankrun::agent
