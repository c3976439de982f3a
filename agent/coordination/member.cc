#include "agent/coordination/member.h"

#include <algorithm>
#include <utility>

#include "agent/coordination/mutation.h"
#include "agent/job/exit_codes.h"
#include "base/format.h"

namespace rankrun::agent {
namespace {

constexpr int kBeatsPerTimeout = 10;
// The agent has 1/kLeaseSlack of the node timeout to kill its workers itself,
// before its guardian kills everything.
constexpr int kLeaseSlack = 12;

NodeState StateIn(MemberPhase phase) {
  switch (phase) {
    case MemberPhase::kJoining:
    case MemberPhase::kWaiting:
    case MemberPhase::kPreparing:
    case MemberPhase::kOver:
      return NodeState::kNone;
    case MemberPhase::kPrepared:
      return NodeState::kPrepared;
    case MemberPhase::kRunning:
      return NodeState::kRunning;
    case MemberPhase::kStopping:
      return NodeState::kStopping;
    case MemberPhase::kDone:
      return NodeState::kDone;
    case MemberPhase::kFinished:
      return NodeState::kFinished;
  }
  __builtin_unreachable();
}

}  // namespace

Member::Member(const MemberPolicy& policy, Hello self, TimePoint now)
    : policy_(policy),
      self_(std::move(self)),
      now_(now),
      start_(now),
      hello_sent_(now),
      acknowledged_(now),
      next_beat_(now) {}

std::vector<MemberAction> Member::Step(const MemberEvent& event, TimePoint now) {
  now_ = now;
  if (phase_ == MemberPhase::kOver) return {};
  CheckTimeouts();  // first: a message that comes too late must not start anything
  if (phase_ == MemberPhase::kOver) return std::exchange(actions_, {});
  std::visit([this](const auto& e) { On(e); }, event);
  CheckTimeouts();
  return std::exchange(actions_, {});
}

Hello Member::hello() const {
  Hello hello = self_;
  hello.work = StateIn(phase_);
  return hello;
}

TimePoint Member::deadline() const {
  if (phase_ == MemberPhase::kJoining) {
    TimePoint last = start_ + policy_.join_timeout;
    return refused_since_ ? std::min(last, *refused_since_ + policy_.refusal_timeout) : last;
  }
  TimePoint first = (end_ ? now_ : acknowledged_) + policy_.node_timeout;
  if (is_up_) first = std::min(first, next_beat_);
  if (SomethingRuns() && !is_killing_) first = std::min(first, LeaseEnd());
  return first;
}

TimePoint Member::LeaseEnd() const {
  if (IsMutated(Mutation::kLeaseIgnored)) return now_ + policy_.node_timeout;
  return acknowledged_ + policy_.node_timeout * 2 / 3;
}

Duration Member::lease() const {
  Duration slack = policy_.node_timeout / kLeaseSlack;
  if (SomethingRuns() && !is_killing_) return LeaseEnd() + slack - now_;
  return policy_.node_timeout * 2 / 3 + slack;
}

bool Member::SomethingRuns() const {
  return phase_ == MemberPhase::kRunning || phase_ == MemberPhase::kStopping;
}

// --- The link ---

void Member::On(const LinkUp&) {
  is_up_ = true;
  refused_since_.reset();
  hello_sent_ = now_;
  beats_.clear();
  unfinished_changed_ = unfinished_.has_value();
  next_beat_ = now_ + policy_.node_timeout / kBeatsPerTimeout;
  if (request_) Emit(Send{*request_});
}

void Member::On(const LinkDown& event) {
  is_up_ = false;
  why_down_ = event.why;
  if (!event.is_refused) return refused_since_.reset();
  if (!refused_since_) refused_since_ = now_;
}

void Member::On(const MessageFromCoordinator& event) {
  if (phase_ == MemberPhase::kJoining) phase_ = MemberPhase::kWaiting;
  std::visit([this](const auto& message) { OnMessage(message); }, event.message);
}

void Member::SendBeat() {
  next_beat_ = now_ + policy_.node_timeout / kBeatsPerTimeout;
  beats_.push_back(now_);
  bool sends_unfinished =
      phase_ == MemberPhase::kRunning && std::exchange(unfinished_changed_, false);
  Emit(Send{Beat{++last_beat_, sends_unfinished ? unfinished_ : std::nullopt}});
}

void Member::OnMessage(const Beat& message) {
  uint64_t before = last_beat_ - beats_.size();  // answered, or of an earlier connection
  if (message.number <= before || message.number > last_beat_) return;
  auto answered = beats_.begin() + static_cast<std::ptrdiff_t>(message.number - before - 1);
  acknowledged_ = std::max(acknowledged_, *answered);
  beats_.erase(beats_.begin(), answered + 1);
}

// The first Waiting on a connection answers the hello.
void Member::OnMessage(const Waiting& message) {
  acknowledged_ = std::max(acknowledged_, hello_sent_);
  if (!message.text.empty()) Emit(ShowRoll{message.text});
}

void Member::OnMessage(const Refusal& message) {
  LeaveAtOnce(message.text, "the coordinator refuses this node: " + message.text);
}

void Member::On(const UnreadableMessage& event) {
  std::string text = "the coordinator sent a message that this version cannot read: " + event.why;
  LeaveAtOnce(text, text);
}

void Member::LeaveAtOnce(const std::string& cause, const std::string& text) {
  if (phase_ == MemberPhase::kRunning) StopOwnWorkers(cause, false, false);
  EndWhenStopped(kExitNoRendezvous, text);
}

// --- A round ---

void Member::OnMessage(const Prepare& message) {
  bool may = phase_ == MemberPhase::kWaiting || phase_ == MemberPhase::kPreparing ||
             phase_ == MemberPhase::kPrepared || phase_ == MemberPhase::kDone;
  if (!may || end_ || message.round <= self_.round) return;
  phase_ = MemberPhase::kPreparing;
  self_.round = message.round;
  self_.attempts = std::max(self_.attempts, message.attempt);
  self_.failure.reset();
  Emit(MakeReady{message});
}

void Member::On(const Ready& event) {
  if (phase_ != MemberPhase::kPreparing || event.round != self_.round) return;
  phase_ = MemberPhase::kPrepared;
  Emit(Send{
      Prepared{event.round, event.store_port, event.own_addresses, event.coordinator_address}});
}

void Member::OnMessage(const StartRound& message) {
  if (phase_ != MemberPhase::kPrepared || message.round != self_.round) return;
  phase_ = MemberPhase::kRunning;
  is_killing_ = false;
  unfinished_.reset();
  unfinished_changed_ = false;
  self_.attempts += 1;
  Emit(StartWorkers{message});
}

void Member::On(const PartFailed& event) {
  bool is_in_round = phase_ == MemberPhase::kPreparing || phase_ == MemberPhase::kPrepared ||
                     phase_ == MemberPhase::kRunning;
  if (!is_in_round || end_) return;
  self_.failure = event.cause;
  phase_ = phase_ == MemberPhase::kRunning ? MemberPhase::kStopping : MemberPhase::kWaiting;
  Emit(Send{Failed{self_.round, event.cause}});
}

void Member::On(const WorkersOver& event) {
  if (!SomethingRuns()) return;
  self_.stuck.reset();
  bool is_done = event.have_succeeded && phase_ == MemberPhase::kRunning && !end_;
  phase_ = is_done ? MemberPhase::kDone : MemberPhase::kWaiting;
  if (is_done) {
    Emit(Send{Done{self_.round}});
  } else {
    Emit(Send{Stopped{self_.round}});
  }
  if (end_) End(end_->exit_code, end_->text);
}

void Member::On(const WorkersLeft& event) {
  if (phase_ != MemberPhase::kRunning) return;
  unfinished_ = event.local_ranks;
  unfinished_changed_ = true;
}

void Member::On(const WorkersStuck& event) {
  if (phase_ != MemberPhase::kStopping) return;
  self_.stuck = event.process;
  Emit(Send{Stuck{self_.round, event.process}});
}

void Member::OnMessage(const Stop& message) {
  if (message.round != self_.round) return;
  if (phase_ == MemberPhase::kRunning)
    return StopOwnWorkers(message.why, message.is_failure, false);
  bool nothing_runs = phase_ == MemberPhase::kPreparing || phase_ == MemberPhase::kPrepared ||
                      phase_ == MemberPhase::kDone || phase_ == MemberPhase::kWaiting;
  if (!nothing_runs) return;
  if (phase_ == MemberPhase::kDone && message.is_failure) Emit(ReportSuccess{message.why});
  phase_ = MemberPhase::kWaiting;
  Emit(Send{Stopped{message.round}});
}

void Member::StopOwnWorkers(const std::string& why, bool is_failure, bool at_once) {
  phase_ = MemberPhase::kStopping;
  is_killing_ = at_once;
  if (IsMutated(Mutation::kToldBeforeReaped)) Emit(Send{Stopped{self_.round}});
  Emit(StopWorkers{why, is_failure, at_once});
}

// --- The end ---

void Member::On(const LeaveWanted& event) {
  if (phase_ == MemberPhase::kFinished) return;
  SendRequest(Leave{event.why});
  if (phase_ == MemberPhase::kRunning) phase_ = MemberPhase::kStopping;
  EndWhenStopped(kExitDrained, "");
}

// Sends the request now, and again on each new connection.
void Member::SendRequest(MemberMessage message) {
  Emit(Send{message});
  request_ = std::move(message);
}

void Member::On(const CloseWanted& event) {
  if (phase_ == MemberPhase::kFinished) return;
  SendRequest(Close{event.cause});
  if (phase_ == MemberPhase::kRunning) phase_ = MemberPhase::kStopping;
  EndWhenStopped(event.cause.exit_code, "");
}

void Member::OnMessage(const Finish& message) {
  bool is_ours = message.round == self_.round &&
                 (phase_ == MemberPhase::kDone || phase_ == MemberPhase::kFinished);
  if (!is_ours) return;
  phase_ = MemberPhase::kFinished;
  Emit(Send{FinishSeen{message.round}});
}

void Member::OnMessage(const Verdict& message) {
  // An honest coordinator waits for all workers before a success.
  if (phase_ == MemberPhase::kRunning && message.exit_code == 0) {
    constexpr const char* kWhy = "the coordinator ended the job while the workers here ran";
    StopOwnWorkers(kWhy, true, false);
    return EndWhenStopped(kExitInternalError, kWhy);
  }
  if (phase_ == MemberPhase::kRunning) StopOwnWorkers(message.text, message.exit_code != 0, false);
  EndWhenStopped(message.exit_code, message.text);
}

// The first reason wins. But a member that has seen Finish always succeeds.
void Member::EndWhenStopped(int exit_code, std::string text) {
  if (!end_) end_ = EndNode{exit_code, std::move(text)};
  if (phase_ == MemberPhase::kFinished) end_ = EndNode{0, ""};
  if (SomethingRuns()) return;
  Emit(Send{Stopped{self_.round}});
  End(end_->exit_code, end_->text);
}

void Member::Emit(MemberAction action) { actions_.push_back(std::move(action)); }

void Member::End(int exit_code, std::string text) {
  phase_ = MemberPhase::kOver;
  Emit(EndNode{exit_code, std::move(text)});
}

// --- Time-outs ---

void Member::CheckJoinTimeout() {
  if (now_ >= start_ + policy_.join_timeout) {
    return EndWhenStopped(
        kExitNoRendezvous,
        "found no coordinator within " + FormatSeconds(policy_.join_timeout) + ": " + why_down_);
  }
  if (refused_since_ && now_ >= *refused_since_ + policy_.refusal_timeout) {
    EndWhenStopped(kExitNoRendezvous, "found no coordinator: " + why_down_);
  }
}

void Member::CheckTimeouts() {
  if (phase_ == MemberPhase::kOver) return;
  if (phase_ == MemberPhase::kJoining) return CheckJoinTimeout();
  if (is_up_ && now_ >= next_beat_) SendBeat();
  std::string lost = "lost the coordinator" + (why_down_.empty() ? "" : ": " + why_down_);
  if (SomethingRuns() && !is_killing_ && now_ >= LeaseEnd()) {
    bool has_failed = phase_ == MemberPhase::kStopping && self_.failure;
    if (!has_failed) {
      self_.failure = Cause{.text = "node " + self_.name + " lost the coordinator",
                            .exit_code = kExitLostCoordinator,
                            .is_primary = false,
                            .consumes_restart = false};
    }
    StopOwnWorkers(lost, true, true);
  }
  if (end_ || now_ < acknowledged_ + policy_.node_timeout) return;
  EndWhenStopped(
      kExitLostCoordinator,
      lost + "; no answer for " + FormatSeconds(policy_.node_timeout) + " (--node-timeout)");
}

}  // namespace rankrun::agent
