#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/control_dial.h"
#include "agent/control_link.h"
#include "agent/coordinator_host.h"
#include "agent/host_finder.h"
#include "agent/incarnation.h"
#include "agent/job_spec.h"
#include "agent/member.h"
#include "agent/node_place.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// This node's part in a job of several: finds the coordinator, or is its host,
// and does what the member core says.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks.
class Membership {
 public:
  struct Callbacks {
    // Opens the store of an attempt, which this node hosts; returns its port.
    std::function<Result<uint16_t>()> open_store;
    // From where it is to take connections; empty: from everywhere.
    std::function<void(const std::vector<std::string>& clients)> admit_only;
    std::function<void(const NodePlace&)> start;
    // NoteWorkersOver follows, also if none run.
    std::function<void(const StopWorkers&)> stop;
    std::function<void(const std::string& text)> say;
    std::function<void(const std::string& text)> on_node_lost;
    // What all nodes know of a failed attempt.
    std::function<void(const AttemptRecord&)> show_report;
    // Nothing of the job runs here any more, and nobody needs this node.
    std::function<void(int exit_code, const std::string& text)> on_end;
  };

  // `spec`, which has nodes, and `incarnation` outlive it.
  Membership(Loop& loop, const JobSpec& spec, Incarnation& incarnation, Callbacks callbacks);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Becomes the coordinator's host, if that is to be here. Errors: kInvalid,
  // kSystem: its port cannot be had.
  Result<void> Open();
  // A connection at the store's port that wants the coordinator.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes);

  // Dials.
  void Begin();

  void NoteFailure(const Cause& cause) { Step(PartFailed{cause}); }
  void NoteWorkersOver(bool have_succeeded) { Step(WorkersOver{have_succeeded}); }
  void NoteWorkersLeft(std::vector<int> local_ranks) { Step(WorkersLeft{std::move(local_ranks)}); }
  void NoteStuck(StuckProcess process) { Step(WorkersStuck{std::move(process)}); }
  // This node's part of the report on a failed attempt follows; and there it is.
  void OweReport(int attempt) {
    owed_report_ = attempt;
    was_down_ = false;
  }
  void TellReport(AttemptRecord record);
  void WantLeave(const std::string& why) { Want(LeaveWanted{why}); }
  void WantClose(const Cause& cause) { Want(CloseWanted{cause}); }

 private:
  Result<void> Host();
  void FindHost();
  void Find(const std::string& host, std::function<void(bool is_here)> on_found);
  void OnFirstFound(bool is_here);
  void TakeFreedPort(const DialFailure& failure);
  void CheckOtherEndpoints();
  std::vector<std::string> EndpointHosts() const;
  Hello About() const;
  bool IsRefused() const;
  void SayOnce(const DialFailure& failure);
  void OnUp();
  std::string MakeHello();
  std::vector<std::string> OwnAddresses() const;
  void OnMessage(std::string_view bytes);
  void Want(const MemberEvent& event);
  void TellWish();
  void Step(const MemberEvent& event);
  void Act(const Send& action);
  void Act(const MakeReady& action);
  void Act(const StartWorkers& action);
  void Act(const StopWorkers& action);
  void Act(const ShowRoll& action);
  void Act(const EndNode& action);
  std::string WhyAlone() const;
  void TryNextStore();
  void OnStoreDialled(DialResult result);
  void StartAt(const std::string& address);
  void TryStoresAgain();
  void GiveUpDialling();
  void FailToStart(const std::string& why, bool is_worth_a_restart);
  void Beat();
  void AwaitReport(const Verdict& verdict);
  void OnJobReport(const JobReport& report);
  void ShowOwnReport();
  void HangUp();
  void MaybeEnd();

  Loop& loop_;
  const JobSpec& spec_;
  const NodesSpec& nodes_;
  Incarnation& incarnation_;
  Callbacks callbacks_;
  std::unique_ptr<CoordinatorHost> host_;
  std::string why_unknown_;    // whether it is to be here; empty: known
  bool is_elsewhere_ = false;  // by its address
  std::vector<std::unique_ptr<HostFinder>> finders_;
  bool port_was_taken_ = false;  // as this node would have been the host
  bool was_other_job_ = false;   // there
  Member core_;
  std::unique_ptr<ControlLink> link_;
  Hello said_hello_;                 // the last
  std::set<DialVerdict> said_;       // of which it has been said since the link was up
  std::optional<MemberEvent> wish_;  // of the host, which has not joined yet
  std::optional<EndNode> end_;
  std::optional<int> owed_report_;           // of this attempt, the job's is not here yet
  bool was_down_ = false;                    // the link, since then
  std::optional<AttemptRecord> own_report_;  // to be shown if it does not come
  bool host_has_retired_ = false;
  Prepare round_;  // that is prepared or runs
  Go go_;
  std::vector<std::string> untried_;  // addresses of its store
  std::string store_failures_;
  bool is_dialling_ = false;  // it, before the workers start
  bool has_dialled_ = false;  // not all of its addresses are useless here
  TimePoint dial_until_{};
  std::unique_ptr<ControlDial> dial_;
  Timer tick_;
  Timer beat_;  // to the guardian
  Timer next_dial_;
  Timer wish_patience_;
  Timer report_patience_;
  Timer end_timer_;
};

}  // namespace rankrun::agent
