#include "agent/coordination/liveness_watch.h"

#include <algorithm>

#include "agent/coordination/mutation.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

constexpr int kRefusalsForProof = 2;
constexpr milliseconds kFirstPause{5};
constexpr milliseconds kMaxPause{250};
constexpr Duration kMinTrialPause = std::chrono::seconds(1);
constexpr Duration kMaxTrialPause = std::chrono::minutes(5);  // at a firewall that drops packets
constexpr milliseconds kPausePerNode{1};  // bounds the dials of very many suspects
constexpr size_t kMaxDials = 64;          // at a time
constexpr int kSilentChecks = 3;          // then a node is suspect; it sends a beat per check

}  // namespace

void LivenessWatch::OnHello(uint64_t id, const Endpoint& target, TimePoint now) {
  if (nodes_.empty()) next_silence_check_ = now + node_timeout_ / kSilenceChecksPerTimeout;
  Node& node = nodes_.try_emplace(id, Node{target, now}).first->second;
  if (node.target != target) {
    Plan(id, node, std::nullopt);
    node = Node{target, now};
  }
  Trust(id, node, now);
  node.is_proven |= IsMutated(Mutation::kRefusalNeedsNoTrial);
  if (!node.is_proven && !node.dial) Plan(id, node, now);
}

void LivenessWatch::OnMessage(uint64_t id, TimePoint now) {
  auto found = nodes_.find(id);
  if (found != nodes_.end()) Trust(id, found->second, now);
}

void LivenessWatch::OnBroken(uint64_t id, TimePoint now) {
  auto found = nodes_.find(id);
  if (found != nodes_.end()) Suspect(id, found->second, now);
}

void LivenessWatch::Forget(uint64_t id) {
  auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Plan(id, found->second, std::nullopt);
  nodes_.erase(found);
}

void LivenessWatch::Suspect(uint64_t id, Node& node, TimePoint now) {
  if (std::exchange(node.is_suspect, true)) return;
  node.pause = kFirstPause;
  if (node.is_proven && !node.dial) Plan(id, node, now);
}

void LivenessWatch::Trust(uint64_t id, Node& node, TimePoint now) {
  node.last_heard = now;
  if (!std::exchange(node.is_suspect, false)) return;
  node.refusals = 0;
  node.dial_counts = false;
  if (node.is_proven) Plan(id, node, std::nullopt);  // else the trial is still to come
}

void LivenessWatch::Plan(uint64_t id, Node& node, std::optional<TimePoint> at) {
  if (node.next_dial) plan_.erase({*node.next_dial, id});
  node.next_dial = at;
  if (at) plan_.emplace(*at, id);
}

void LivenessWatch::PlanAfterPause(uint64_t id, Node& node, TimePoint now) {
  Plan(id, node, now + node.pause);
  Duration longest = std::max<Duration>(kMaxPause, plan_.size() * kPausePerNode);
  node.pause = std::min(2 * node.pause, longest);
}

void LivenessWatch::CheckSilence(TimePoint now) {
  const Duration period = node_timeout_ / kSilenceChecksPerTimeout;
  for (auto& [id, node] : nodes_) {
    if (now - node.last_heard >= kSilentChecks * period) Suspect(id, node, now);
  }
  next_silence_check_ = now + period;
}

// A firewall that refuses a trial would refuse the next one, too. A trial without an answer may
// have been lost, or this host had no descriptor.
void LivenessWatch::EndTrial(uint64_t id, Node& node, LivenessAnswer answer, TimePoint now) {
  if (answer == LivenessAnswer::kRefused) return Forget(id);
  node.trial_pause = std::clamp(2 * node.trial_pause, kMinTrialPause, kMaxTrialPause);
  Plan(id, node, now + node.trial_pause);
}

std::vector<LivenessDial> LivenessWatch::Due(TimePoint now) {
  if (!nodes_.empty() && now >= next_silence_check_) CheckSilence(now);
  std::vector<LivenessDial> dials;
  while (!plan_.empty() && plan_.begin()->first <= now && dialled_.size() < kMaxDials) {
    uint64_t id = plan_.begin()->second;
    Node& node = nodes_.at(id);
    Plan(id, node, std::nullopt);
    node.dial = ++last_dial_;
    node.dial_counts = node.is_suspect;
    dialled_[last_dial_] = id;
    dials.push_back({last_dial_, id, node.target});
  }
  return dials;
}

std::optional<NodeGone> LivenessWatch::OnAnswer(uint64_t dial, LivenessAnswer answer,
                                                TimePoint now) {
  auto dialled = dialled_.find(dial);
  if (dialled == dialled_.end()) return std::nullopt;
  uint64_t id = dialled->second;
  dialled_.erase(dialled);
  auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.dial != dial) return std::nullopt;
  Node& node = found->second;
  node.dial.reset();
  node.is_proven |= answer == LivenessAnswer::kConnected;
  if (!node.is_proven) {
    EndTrial(id, node, answer, now);
    return std::nullopt;
  }
  if (!node.is_suspect) return std::nullopt;
  bool is_refusal = answer == LivenessAnswer::kRefused && node.dial_counts;
  if (!is_refusal) {
    node.refusals = 0;
    PlanAfterPause(id, node, now);
    return std::nullopt;
  }
  node.refusals += 1;
  if (node.refusals < kRefusalsForProof) {
    Plan(id, node, now + kFirstPause);
    return std::nullopt;
  }
  NodeGone gone{id, node.target.port};
  Forget(id);
  return gone;
}

std::optional<TimePoint> LivenessWatch::deadline() const {
  if (nodes_.empty()) return std::nullopt;
  if (plan_.empty() || dialled_.size() >= kMaxDials) return next_silence_check_;
  return std::min(next_silence_check_, plan_.begin()->first);
}

}  // namespace rankrun::agent
