#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/control_message.h"
#include "agent/coordinator_events.h"
#include "agent/coordinator_node.h"
#include "base/clock.h"

namespace rankrun::agent {

// Which nodes form the job, when their workers start and stop, and how the job
// ends. One for each job. Pure: no clock, no I/O; the table is in
// docs/control-plane.md.
class Coordinator {
 public:
  // `earlier`: what its predecessor on this host kept; that one's agent has
  // ended, with everything below it.
  Coordinator(const CoordinatorPolicy& policy, std::optional<CoordinatorRecord> earlier,
              TimePoint now);

  // Actions are to be carried out in their order.
  std::vector<CoordinatorAction> Step(const CoordinatorEvent& event, TimePoint now);

  // When Tick is wanted next.
  TimePoint deadline() const;
  JobPhase phase() const { return phase_; }
  const CoordinatorRecord& record() const { return record_; }

  // Of the last round that was stopped.
  using Outcome = RoundOutcome;
  const Outcome& outcome() const { return outcome_; }

 private:
  using Node = CoordinatorNode;

  // Who could form a round now.
  struct Muster {
    std::vector<Candidate> candidates;
    bool others_are_expected = false;
    bool something_runs = false;
  };

  void GoOn();
  void OnPeerSaid(const PeerSaid& event);
  void OnPeerLost(PeerId peer);
  void OnTick();
  void OnHello(PeerId peer, const Hello& hello);
  bool MayTakePart(PeerId peer, const Hello& hello);
  void OnNextIncarnation(Node& node);
  void OnBack(Node& node);
  void OnBackWhileRunning(Node& node, bool of_this_round);
  void NoteOtherWorld(const Hello& hello);
  void On(Node& node, const Prepared& message);
  void On(Node& node, const Failed& message);
  void On(Node& node, const Done& message);
  void On(Node& node, const Stopped& message);
  void On(Node& node, const FinishSeen& message);
  void On(Node& node, const Leave& message);
  void On(Node& node, const Close& message);
  void On(Node& node, const Beat& message);
  void On(Node& node, const Stuck& message);
  void On(Node&, const Report&) {}  // passed on beside
  void On(Node&, const Hello&) {}   // see OnHello
  void EndBy(Node& node, Cause cause);
  void Improve(const Cause& cause);
  bool EndsDrained();

  void Enter(JobPhase phase, std::optional<Duration> at_most);
  void Gather(bool waits_for_newcomers);
  void TryForm();
  void Form(std::vector<Candidate> candidates);
  void Grant();
  Go GoFor(const Node& node) const;
  Muster CallUp() const;
  void LetIn();
  void TellIfSpare(const Node& node);
  bool IsClaimTaken(const Hello& hello) const;
  void NoteDone(Node& node);
  void AwaitAll();
  void Settle(Node& node, Work work);
  void BeginStop(const Cause& cause);
  void OrderStop(Node& node);
  void Resolve();
  void BeginFinish();
  void End(Verdict verdict);
  void GiveUpGathering();
  void GiveUpFinishing();
  void LoseSilentNodes();
  void Lose(uint64_t id);
  TimePoint StopBy(const Node& node) const;
  void GiveUpLateNodes();
  bool IsGivenUp(const Hello& hello) const;
  void Remove(uint64_t id, Duration may_live, const std::string& text);
  Cause LossOf(const std::string& text) const;
  void NoteLossMeanwhile(Cause loss);
  void NoteStuck(Node& node);
  std::string StuckText(const Node& node) const;
  void CallTheRoll();
  std::string RollText() const;
  std::string UnfinishedText(const Node& node) const;

  Node* NodeOf(PeerId peer);
  static bool IsIn(const Node& node) { return node.seat.has_value(); }
  void Say(const Node& node, CoordinatorMessage message);
  void Persist() { actions_.emplace_back(Keep{record_}); }

  const CoordinatorPolicy policy_;
  CoordinatorRecord record_;
  JobPhase phase_ = JobPhase::kGathering;
  std::map<uint64_t, Node> nodes_;
  std::map<PeerId, uint64_t> node_of_peer_;
  uint64_t arrivals_ = 0;
  int awaited_ = 0;                     // nodes with is_awaited
  bool waits_for_newcomers_ = true;     // gathering: there is a last call
  TimePoint now_;                       // of this step
  TimePoint since_;                     // of the phase
  TimePoint next_look_;                 // for silent nodes
  TimePoint next_roll_;                 // call to those that wait
  TimePoint not_before_{};              // workers of a lost node may live until then
  std::optional<TimePoint> deadline_;   // of the phase
  std::optional<TimePoint> form_at_;    // gathering: the last call is over, or not_before_
  std::optional<TimePoint> regroup_;    // running: newcomers are let in
  std::optional<TimePoint> finish_by_;  // running: after the first was done
  Duration lasted_{};                   // the round that was stopped
  Go go_;                               // of the round, without the store's clients
  int newest_round_ = 0;                // that a member knows of, of whatever coordinator
  std::string leave_;                   // the last one
  std::string lost_meanwhile_;          // stopping: nodes, in words
  std::map<uint64_t, int> given_up_;    // nodes that only a later incarnation brings back
  Outcome outcome_;
  bool has_retired_ = false;
  std::vector<CoordinatorAction> actions_;
};

}  // namespace rankrun::agent
