#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/gathering.h"
#include "agent/coordination/newcomer_watch.h"
#include "agent/coordination/roster.h"
#include "agent/coordination/round_in_progress.h"
#include "agent/coordination/round_verdict.h"
#include "base/clock.h"

namespace rankrun::agent {

// Decides which nodes form the job, when their workers start and stop, and how
// the job ends. One instance per job. Pure: no clock, no I/O. The table of
// states and events is in docs/control-plane.md.
class Coordinator {
 public:
  // `earlier`: record that the predecessor on this host persisted. Its agent
  // has ended, with all descendants.
  Coordinator(const CoordinatorPolicy& policy, std::optional<CoordinatorRecord> earlier,
              TimePoint now);

  // Returns actions, to be carried out in their order.
  std::vector<CoordinatorAction> Step(const CoordinatorEvent& event, TimePoint now);

  // Time at which the next Tick is due.
  TimePoint deadline() const;
  const CoordinatorNode* Find(uint64_t node) const;  // null: not in the job
  JobPhase phase() const { return phase_; }

  // Outcome of the last round that was stopped.
  using Outcome = RoundOutcome;
  const Outcome& outcome() const { return outcome_; }

 private:
  using Node = Roster::Node;

  void Resume(CoordinatorRecord record);
  void OnMessageFromPeer(const MessageFromPeer& event);
  void OnPeerLost(PeerId peer);
  void On(const NodeGone& event);
  void On(const OthersRefused& event);
  void On(const CauseFound& event);
  void On(const AwaitedEndSeen& event) { awaited_end_ = {event.text, now_}; }
  void OnTick();
  void OnHello(PeerId peer, const Hello& hello);
  void OnNextIncarnation(Node& node);
  void OnConnected(Node& node);
  void OnConnectedWhileRunning(Node& node, bool of_this_round);
  void AdoptNewerRound(const Hello& hello);
  void On(Node& node, const Prepared& message);
  void On(Node& node, const Failed& message);
  void On(Node& node, const Done& message);
  void On(Node& node, const Stopped& message);
  void On(Node& node, const FinishSeen& message);
  void On(Node& node, const Leave& message);
  void On(Node& node, const Close& message);
  void On(Node& node, const Beat& message);
  void On(Node& node, const Stuck& message);
  void On(Node&, const Report&) {}        // CoordinatorHost merges them
  void On(Node&, const NodeHealth&) {}    // CoordinatorHost judges it
  void On(Node&, const NodeStacks&) {}    // CoordinatorHost compares them
  void On(Node&, const Hello&) {}         // see OnHello
  void On(Node&, const Relay&) {}         // see QueryRelay
  void On(Node&, const WhoseClients&) {}  // see ClientRelay
  void On(Node&, const ClientVerdicts&) {}
  Cause CauseOn(const Node& node, Cause cause) const;
  void EndWithCause(Node& node, Cause cause);
  bool EndsDrained();

  void Enter(JobPhase phase, std::optional<Duration> at_most);
  void StartGathering(bool waits_for_newcomers);
  void TryForm();
  void Form(std::vector<Candidate> candidates);
  void Grant();
  void RegroupForNewcomers();
  void NotifyIfSpare(const Node& node);
  void RecordDone(Node& node);
  void RecordAnswer(Node& node, NodeState work);
  void OnAnswer();
  void BeginStop(const Cause& cause, const std::string& node,
                 std::optional<uint64_t> failed_node = {});
  void PreferLoss(uint64_t node, TimePoint since, const Cause& loss);
  void RecordLoss(const Cause& loss);
  void OrderStop(Node& node);
  void DecideNext();
  bool RecordNodeOfCause(RoundVerdict& stop);
  void ReplaceIfFailing();
  void BeginFinish();
  void End(Verdict verdict);
  void GiveUpGathering();
  void GiveUpFinishing();
  void LoseSilentNodes();
  void Lose(uint64_t id);
  TimePoint StopDeadline(const Node& node) const;
  void GiveUpLateNodes();
  void Remove(uint64_t id, Duration may_live, const std::string& text);
  void AnnounceLoss(const Cause& loss);
  void PreferStoreLoss(RoundVerdict& stop);
  void HandleStuck(Node& node);
  void SendRollCall();

  int HighestKnownRound() const { return std::max(round_.number(), highest_known_round_); }
  bool IsIn(const Node& node) const { return round_.Contains(node.hello.node); }
  void SendTo(const Node& node, CoordinatorMessage message);
  void Persist();
  int CurrentAttempt() const { return is_granted_ ? attempts_ - 1 : attempts_; }
  void Announce(std::optional<int> attempt, events::Decision decision);

  const CoordinatorPolicy policy_;
  JobPhase phase_ = JobPhase::kGathering;
  Roster roster_;
  Gathering gathering_;
  NewcomerWatch newcomers_;
  std::optional<RoundVerdict> stop_;  // set while stopping
  // Loss of the node with the store of `round_` after its own workers had ended: the cause of
  // later failures that are not primary.
  std::optional<Cause> store_loss_;
  RoundInProgress round_;
  int attempts_ = 0;           // number of rounds that were started
  bool is_granted_ = false;    // `round_` was started
  bool has_finished_ = false;  // all workers of `round_` have succeeded
  bool has_lost_ = false;      // a node was lost; its workers may live for the kill bound
  RestartHistory history_;
  CauseHistory causes_;
  std::optional<Verdict> verdict_;
  TimePoint now_;
  TimePoint phase_start_;
  TimePoint next_silence_check_;              // for LoseSilentNodes
  std::optional<TimePoint> deadline_;         // end of the phase
  std::optional<TimePoint> finish_deadline_;  // running: set by the first node that is done
  struct {
    std::string text;
    TimePoint seen;
  } awaited_end_{};              // the last one
  int highest_known_round_ = 0;  // highest in any hello, of any coordinator
  std::string leave_reason_;     // reason of the last Leave
  Outcome outcome_;
  bool has_retired_ = false;
  std::vector<CoordinatorAction> actions_;
};

}  // namespace rankrun::agent
