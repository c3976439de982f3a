#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/control_message.h"
#include "agent/member_events.h"
#include "base/clock.h"

namespace rankrun::agent {

// One agent's side of a job of several nodes: what it starts and stops by the
// coordinator's word, and what it does when that is not to be had. Pure: no
// clock, no I/O; the table is in docs/control-plane.md.
class Member {
 public:
  // `about`: who this is; its round and work are kept here.
  Member(const MemberPolicy& policy, Hello about, TimePoint now);

  // Actions are to be carried out in their order.
  std::vector<MemberAction> Step(const MemberEvent& event, TimePoint now);

  // What opens a connection now.
  Hello hello() const;
  // How long from now this agent may be silent before its guardian has to kill
  // it and its workers; to be told after each Step.
  Duration lease() const;
  // When MemberTick is wanted next.
  TimePoint deadline() const;
  MemberPhase phase() const { return phase_; }
  int round() const { return about_.round; }

 private:
  void On(const LinkUp&);
  void On(const LinkDown& event);
  void On(const CoordinatorSaid& event);
  void On(const Ready& event);
  void On(const PartFailed& event);
  void On(const WorkersOver& event);
  void On(const WorkersLeft& event);
  void On(const WorkersStuck& event);
  void On(const LeaveWanted& event);
  void On(const CloseWanted& event);
  void On(const MemberTick&) {}

  void Hear(const Waiting& message);
  void Hear(const Refusal& message);
  void Hear(const Prepare& message);
  void Hear(const Go& message);
  void Hear(const Stop& message);
  void Hear(const Finish& message);
  void Hear(const Verdict& message);
  void Hear(const Beat& message);
  void Hear(const JobReport&) {}  // shown beside, as is the next
  void Hear(const NodeLost&) {}

  void OnTime();
  void JoinInTime();
  void SendBeat();
  void Wish(MemberMessage message);
  void StopHere(const std::string& why, bool is_failure, bool at_once);
  void EndWhenStopped(int exit_code, std::string text);
  void End(int exit_code, std::string text);
  bool SomethingRuns() const;
  void Do(MemberAction action);
  TimePoint LeaseEnd() const;

  const MemberPolicy policy_;
  Hello about_;
  MemberPhase phase_ = MemberPhase::kJoining;
  TimePoint now_;
  TimePoint since_;                         // the beginning
  std::optional<TimePoint> refused_since_;  // without a break, and never let in
  TimePoint hello_sent_;
  TimePoint acknowledged_;  // when the newest of what was answered had been sent
  TimePoint next_beat_;
  std::deque<TimePoint> beats_;                 // that are not answered: when they were sent
  uint64_t last_beat_ = 0;                      // its number
  std::optional<std::vector<int>> unfinished_;  // local ranks; nothing: all that run
  bool owes_unfinished_ = false;                // with the next beat
  bool is_up_ = false;
  std::string why_down_;
  bool is_killing_ = false;            // what runs
  std::optional<MemberMessage> wish_;  // Leave or Close
  std::optional<EndNode> end_;         // once nothing runs here any more
  std::vector<MemberAction> actions_;
};

}  // namespace rankrun::agent
