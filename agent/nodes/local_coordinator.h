#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <variant>

#include "agent/coordination/coordinator.h"
#include "agent/coordination/member.h"
#include "agent/guardian/incarnation.h"
#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"
#include "agent/nodes/coordinator_client.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// The coordinator of a job of one node, and this node's member: the cores that several nodes
// have, in one process and without connections.
// Thread: loop.
class LocalCoordinator final : public CoordinatorClient {
 public:
  // Requests to the owner. None of them may call this object.
  struct Callbacks {
    std::function<uint16_t()> open_store;  // for the next attempt; returns its port
    std::function<void(const NodePlace&)> start;
    // Decided after an attempt, or at the end of the job unless it succeeded.
    // `restarts`: of --max-restarts that are used up.
    std::function<void(const RoundOutcome&, Duration pause, int restarts)> on_decided;
    std::function<void(int exit_code)> on_end;
  };

  // `spec` and `incarnation` outlive this object.
  LocalCoordinator(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Callbacks callbacks);

  void Begin() override;
  void NoteState(const GroupState& state) override;
  bool is_pausing() const override { return coordinator_.phase() == JobPhase::kPausing; }
  void EndPause() override { Carry(agent::EndPause{}); }

 private:
  using Happened = std::variant<MemberEvent, CoordinatorEvent>;

  void Step(const MemberEvent& event) override { Carry(event); }
  void Request(const MemberEvent& event) override { Carry(event); }
  Hello SelfHello() const;
  void Carry(Happened event);
  void StepOne(const Happened& event);
  void Act(const Send& action);
  void Act(const MakeReady& action);
  void Act(const StartWorkers& action);
  void Act(const StopWorkers&) {}  // nothing but this node's workers can cause a stop
  void Act(const ReportSuccess&) {}
  void Act(const ShowRoll&) {}
  void Act(const EndNode& action);
  void Act(const SendMessage& action);
  void Act(const HangUp&) {}
  void Act(const PersistRecord& action);
  void Act(const Retire&) {}
  void Act(const Announcement& action);

  const JobSpec& spec_;
  Incarnation& incarnation_;
  Callbacks callbacks_;
  Coordinator coordinator_;
  Member member_;
  Prepare round_;                  // the one that is prepared or runs
  std::deque<Happened> happened_;  // not carried out yet
  bool is_carrying_ = false;
  Timer tick_;
};

// Returns whether a restart helps if the agent dies in this state: nobody has
// asked for the end, and the work is not done. Pure.
bool CanResumeAfterAgentDeath(const GroupState& state);

}  // namespace rankrun::agent
