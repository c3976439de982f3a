#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/control/control_dial.h"
#include "agent/control/control_link.h"
#include "agent/coordination/hosting.h"
#include "agent/coordination/member.h"
#include "agent/coordination/member_end.h"
#include "agent/coordination/postponed_request.h"
#include "agent/coordination/store_search.h"
#include "agent/guardian/incarnation.h"
#include "agent/health/store_waits.h"
#include "agent/job/job_spec.h"
#include "agent/nodes/client_questions.h"
#include "agent/nodes/coordinator_client.h"
#include "agent/nodes/coordinator_host.h"
#include "agent/nodes/host_finder.h"
#include "agent/nodes/liveness_port.h"
#include "agent/nodes/membership_callbacks.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// This node's part in a job of several nodes: finds the coordinator or hosts
// it, and carries out the actions of Member.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks.
class Membership final : public CoordinatorClient {
 public:
  using Callbacks = MembershipCallbacks;

  // `spec`, which has nodes, and `incarnation` outlive this object.
  Membership(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Callbacks callbacks);

  // Hosts the coordinator if it belongs here. Errors: kInvalid, kSystem: its port cannot be opened.
  Result<void> Open();
  // Takes a connection to the coordinator that arrived at the store's port.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes);
  void Begin() override;  // starts to connect to the coordinator

  void NoteStuck(StuckProcess process) { Step(WorkersStuck{std::move(process)}); }
  // Announces that SendReport follows with this node's part of a report.
  void AnnounceReport(int attempt) { end_.OnAnnounced(attempt); }
  void SendReport(AttemptRecord record);
  void SendHealth(std::vector<WorkerSample> workers, std::vector<WaitingClient> clients);
  // Sends the digests of stacks that StacksWanted has asked for.
  void SendStacks(const std::vector<RankDigest>& digests);
  void RequestLeave(const std::string& why) { Request(LeaveWanted{why}); }
  // Why this node is in no round; empty: it is in one, or nothing is known yet.
  const std::string& waits() const { return waits_; }
  bool SendRelay(const Relay& relay);  // false: there is no connection to the coordinator
  // Asks the node of a client of the store whether it may use it; Callbacks::on_verdict follows.
  void AskWhose(StoreClient client);

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }
  Result<void> Host();
  void Carry(const std::vector<HostingAction>& actions);
  void Act(const StartCoordinator&);
  void Act(const FindHost& action);
  void Act(const ShowNote& action) { callbacks_.say(action.text); }
  void NoteDialFailure(const DialFailure& failure);
  bool IsUnreached(const DialFailure& failure) const;
  bool IsJoining() const;
  Hello SelfHello() const;
  void WarnOnce(const DialFailure& failure);
  std::function<Result<std::string>(const std::string&)> CredentialOpener() const;
  void OnUp();
  std::string MakeHello();
  void OnMessage(std::string_view bytes);
  void Request(const MemberEvent& event) override;
  void Carry(const std::optional<MemberEvent>& request);
  void Step(const MemberEvent& event) override;
  void Act(const Send& action);
  void Act(const MakeReady& action);
  void Act(const StartWorkers& action);
  void Act(const StopWorkers& action);
  void Act(const ReportSuccess& action);
  void Act(const ShowRoll& action);
  void Act(const EndNode& action);
  SearchView ViewOfStore() const;
  void Search(const std::vector<StoreAction>& actions);
  void Act(const DialStore& action);
  void Act(const DialLater& action) { next_dial_.Start(action.pause); }
  void Act(const AdmitClients& action) { callbacks_.admit_only(action.clients); }
  void Act(const UseStore& action);
  void Act(const StoreUnreachable& action) { FailToStart(action.why, action.is_worth_a_restart); }
  void Act(const SearchCancelled&) { Step(WorkersOver{false}); }
  void OnStoreDialled(const DialResult& result);
  void FailToStart(const std::string& why, bool is_worth_a_restart);
  void Beat();
  void OnHealthOrder(const HealthOrder& order);
  bool IsLinkUp() const;
  void OnClients(const CoordinatorMessage& message);
  void SendQuestions();
  EndView ViewOfEnd() const;
  void Carry(const std::vector<EndAction>& actions);
  void ArmEnd();
  void Act(const SendOwnPart&);
  void Act(const ShowOwnPart& action);
  void Act(const PermitRestart& action);
  void Act(const CloseLink&);
  void Act(const EndAgent& action) { callbacks_.on_end(action.exit_code, action.text); }
  void OnJobReport(const JobReport& report);

  Loop& loop_;
  const JobSpec& spec_;
  const NodesSpec& nodes_;
  Incarnation& incarnation_;
  Callbacks callbacks_;
  std::unique_ptr<LivenessPort> liveness_;  // null: it could not be opened
  std::unique_ptr<CoordinatorHost> host_;
  Hosting hosting_;
  std::vector<std::unique_ptr<HostFinder>> finders_;
  Member core_;
  TimePoint begun_;  // to dial
  std::unique_ptr<ControlLink> link_;
  Hello last_hello_;                  // the last that was sent
  std::set<DialFailureKind> warned_;  // kinds of failure shown since the link was up
  PostponedRequest postponed_request_;
  MemberEnd end_;
  std::optional<AttemptRecord> own_report_;  // shown if the merged one does not arrive
  std::string waits_;
  Prepare round_;  // the one that is prepared or runs
  StoreSearch store_search_;
  std::unique_ptr<ControlDial> dial_;  // to the store, before the workers start
  Timer tick_;
  Timer beat_;  // for heartbeats to the guardian
  Timer next_dial_;
  Timer request_timer_;
  Timer end_timer_;
  ClientQuestions client_questions_;
  Timer clients_timer_;
};

}  // namespace rankrun::agent
