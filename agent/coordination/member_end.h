#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/coordination/member_events.h"
#include "base/clock.h"

namespace rankrun::agent {

// Send this node's part of the report to the coordinator.
struct SendOwnPart {};
// Show this node's part alone, because the merged report has not arrived.
struct ShowOwnPart {
  EndNode end;
  std::string told_failure;  // elsewhere, as the coordinator has told it; empty: none
};
// Tell the guardian whether a dead agent is to be replaced.
struct PermitRestart {
  bool is_permitted;
};
// Close the connection to the coordinator for ever.
struct CloseLink {};
// Nothing of the job runs here any more, and no other node needs this one.
struct EndAgent {
  int exit_code;
  std::string text;
};
using EndAction = std::variant<SendOwnPart, ShowOwnPart, PermitRestart, CloseLink, EndAgent>;

// The parts of a merged report that matter here.
struct MergedReport {
  int attempt;
  bool restarts;  // another attempt follows
  std::optional<int> exit_code;
};

// The state of the node at an event.
struct EndView {
  bool is_link_up;
  bool is_hosting;     // the coordinator runs in this agent
  bool host_was_used;  // a node has connected to it
  TimePoint now;
};

// Decides how long the agent of a node that is over stays: for the merged report on the last
// attempt, and for the nodes that need the coordinator that it hosts. Keeps the parts of reports
// that the coordinator has yet to answer. Pure: no clock, no I/O.
class MemberEnd {
 public:
  explicit MemberEnd(Duration node_timeout) : node_timeout_(node_timeout) {}

  // A round is prepared: reports on earlier attempts are no longer awaited.
  void OnRound();
  void OnStop(const StopWorkers& order);
  void OnReportSuccess(const ReportSuccess& order) { told_failure_ = order.why; }
  // This node's part of a report on the attempt follows.
  void OnAnnounced(int attempt) { awaited_ = attempt; }
  // A node without a failure waits for the report, too.
  void OnVerdict(const Verdict& verdict);
  std::vector<EndAction> OnOwnPart(int attempt, const EndView& view);
  // Repeats the part on each link, because a link takes bytes after its coordinator has died.
  std::vector<EndAction> OnLinkUp() const;
  // Returns whether to show the report: a coordinator that has just begun may repeat it.
  bool OnMergedReport(const MergedReport& report, TimePoint now);

  // The job is over for this node, whose part may not be complete yet. Called once. `hint`: why too
  // few nodes may have joined.
  std::vector<EndAction> OnEnd(const EndNode& end, const std::string& hint, const EndView& view);
  // No node needs the coordinator of this agent any more.
  void OnRetired(TimePoint now);
  std::vector<EndAction> OnTick(const EndView& view);
  // Time of the next OnTick.
  std::optional<TimePoint> deadline() const;

  bool has_ended() const { return end_.has_value(); }

 private:
  bool IsOwnPartToCome() const;
  void HangUp(const EndView& view, std::vector<EndAction>& actions);

  const Duration node_timeout_;
  std::optional<int> awaited_;           // attempt whose merged report is to come
  std::optional<int> own_attempt_;       // of this node's part
  bool is_owed_ = false;                 // the part, until the merged report arrives
  std::optional<int> merged_attempt_;    // of the last merged report
  std::optional<int> judged_exit_code_;  // of the job, from the evidence of all nodes
  std::string told_failure_;             // in the round
  bool awaits_own_part_ = false;         // for the end, because nobody merges it
  bool has_retired_ = false;
  std::optional<EndNode> end_;
  std::optional<TimePoint> hang_up_at_;
  std::optional<TimePoint> exit_at_;
  bool is_over_ = false;  // EndAgent was returned
};

}  // namespace rankrun::agent
