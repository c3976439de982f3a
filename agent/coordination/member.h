#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/coordination/member_events.h"
#include "base/clock.h"

namespace rankrun::agent {

// One agent's part in a job of several nodes: starts and stops its workers as
// the coordinator orders, and ends them itself if the coordinator is lost.
// Pure: no clock, no I/O. The table of states and events is in
// docs/control-plane.md.
class Member {
 public:
  // `self`: identity of this node. The member keeps its other fields up to
  // date.
  Member(const MemberPolicy& policy, Hello self, TimePoint now);

  // Returns actions, to be carried out in their order.
  std::vector<MemberAction> Step(const MemberEvent& event, TimePoint now);

  // First message for a connection that is opened now.
  Hello hello() const;
  // Longest time, from now, for which this agent may be silent before its
  // guardian must kill it and its workers. The caller reports it to the
  // guardian after each Step.
  Duration lease() const;
  // Time at which the next MemberTick is due.
  TimePoint deadline() const;
  MemberPhase phase() const { return phase_; }
  int round() const { return self_.round; }

 private:
  void On(const LinkUp&);
  void On(const LinkDown& event);
  void On(const MessageFromCoordinator& event);
  void On(const UnreadableMessage& event);
  void On(const Ready& event);
  void On(const PartFailed& event);
  void On(const WorkersOver& event);
  void On(const WorkersLeft& event);
  void On(const WorkersStuck& event);
  void On(const LeaveWanted& event);
  void On(const CloseWanted& event);
  void On(const MemberTick&) {}

  void OnMessage(const Waiting& message);
  void OnMessage(const Refusal& message);
  void OnMessage(const Prepare& message);
  void OnMessage(const StartRound& message);
  void OnMessage(const Stop& message);
  void OnMessage(const Finish& message);
  void OnMessage(const Verdict& message);
  void OnMessage(const Beat& message);
  void OnMessage(const JobReport&) {}  // for Membership; so are the next two
  void OnMessage(const NodeLost&) {}
  void OnMessage(const HealthWanted&) {}  // Membership carries these out
  void OnMessage(const HangNotice&) {}
  void OnMessage(const StacksWanted&) {}
  void OnMessage(const HangFound&) {}
  void OnMessage(const Relay&) {}
  void OnMessage(const WhoseClients&) {}
  void OnMessage(const ClientVerdicts&) {}

  void CheckTimeouts();
  void CheckJoinTimeout();
  void SendBeat();
  void SendRequest(MemberMessage message);
  void StopOwnWorkers(const std::string& why, bool is_failure, bool at_once);
  void LeaveAtOnce(const std::string& cause, const std::string& text);
  void EndWhenStopped(int exit_code, std::string text);
  void End(int exit_code, std::string text);
  bool SomethingRuns() const;
  void Emit(MemberAction action);
  TimePoint LeaseEnd() const;

  const MemberPolicy policy_;
  Hello self_;
  MemberPhase phase_ = MemberPhase::kJoining;
  TimePoint now_;
  TimePoint start_;                         // construction
  std::optional<TimePoint> refused_since_;  // since the first refusal in a row, while joining
  TimePoint hello_sent_;
  TimePoint acknowledged_;  // send time of the newest message that was answered
  TimePoint next_beat_;
  std::deque<TimePoint> beats_;                 // send times of the beats without an answer
  uint64_t last_beat_ = 0;                      // number of the newest beat
  std::optional<std::vector<int>> unfinished_;  // local ranks; empty: all
  bool unfinished_changed_ = false;             // send it with the next beat
  bool is_up_ = false;
  std::string why_down_;
  bool is_killing_ = false;               // workers were stopped without grace
  std::optional<MemberMessage> request_;  // Leave or Close
  std::optional<EndNode> end_;            // to be done once nothing runs here
  std::vector<MemberAction> actions_;
};

}  // namespace rankrun::agent
