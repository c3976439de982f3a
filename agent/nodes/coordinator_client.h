#pragma once

#include <utility>
#include <vector>

#include "agent/coordination/member_events.h"
#include "agent/lifecycle/worker_group.h"

namespace rankrun::agent {

// This node's side of its coordinator, which orders attempts, restarts and the end: in
// another process for several nodes (Membership), in this one for one (LocalCoordinator).
class CoordinatorClient {
 public:
  CoordinatorClient() = default;
  CoordinatorClient(const CoordinatorClient&) = delete;
  CoordinatorClient& operator=(const CoordinatorClient&) = delete;
  virtual ~CoordinatorClient() = default;

  virtual void Begin() = 0;  // joins the job
  void NoteFailure(const Cause& cause) { Step(PartFailed{cause}); }
  void NoteWorkersOver(bool have_succeeded) { Step(WorkersOver{have_succeeded}); }
  void NoteWorkersLeft(std::vector<int> local_ranks) { Step(WorkersLeft{std::move(local_ranks)}); }
  void RequestClose(const Cause& cause) { Request(CloseWanted{cause}); }
  // Notes the state of the workers for the next incarnation of this agent.
  virtual void NoteState(const GroupState&) {}

  // Whether the job is known to pause before a restart. EndPause then starts it at once.
  virtual bool is_pausing() const { return false; }
  virtual void EndPause() {}

 protected:
  virtual void Step(const MemberEvent& event) = 0;
  virtual void Request(const MemberEvent& event) = 0;  // a Step of a LeaveWanted or CloseWanted
};

}  // namespace rankrun::agent
