#include "agent/member.h"

#include <algorithm>
#include <utility>

#include "agent/exit_codes.h"
#include "agent/mutation.h"
#include "base/format.h"

namespace rankrun::agent {
namespace {

constexpr int kBeatsPerTimeout = 10;
// This part of the timeout is left to an agent to kill its workers itself,
// before its guardian kills all.
constexpr int kLeaseSlack = 12;

Work WorkIn(MemberPhase phase) {
  switch (phase) {
    case MemberPhase::kJoining:
    case MemberPhase::kWaiting:
    case MemberPhase::kPreparing:
    case MemberPhase::kOver:
      return Work::kNone;
    case MemberPhase::kPrepared:
      return Work::kPrepared;
    case MemberPhase::kRunning:
      return Work::kRunning;
    case MemberPhase::kStopping:
      return Work::kStopping;
    case MemberPhase::kDone:
      return Work::kDone;
    case MemberPhase::kFinished:
      return Work::kFinished;
  }
  __builtin_unreachable();
}

}  // namespace

Member::Member(const MemberPolicy& policy, Hello about, TimePoint now)
    : policy_(policy),
      about_(std::move(about)),
      now_(now),
      since_(now),
      hello_sent_(now),
      acknowledged_(now),
      next_beat_(now) {}

std::vector<MemberAction> Member::Step(const MemberEvent& event, TimePoint now) {
  now_ = now;
  if (phase_ == MemberPhase::kOver) return {};
  OnTime();  // first: the word of a late coordinator may not start anything
  if (phase_ == MemberPhase::kOver) return std::exchange(actions_, {});
  std::visit([this](const auto& e) { On(e); }, event);
  OnTime();
  return std::exchange(actions_, {});
}

Hello Member::hello() const {
  Hello hello = about_;
  hello.work = WorkIn(phase_);
  return hello;
}

TimePoint Member::deadline() const {
  if (phase_ == MemberPhase::kJoining) {
    TimePoint last = since_ + policy_.join_timeout;
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
  owes_unfinished_ = unfinished_.has_value();
  next_beat_ = now_ + policy_.node_timeout / kBeatsPerTimeout;
  if (wish_) Do(Send{*wish_});
}

void Member::On(const LinkDown& event) {
  is_up_ = false;
  why_down_ = event.why;
  if (!event.is_refused) return refused_since_.reset();
  if (!refused_since_) refused_since_ = now_;
}

void Member::On(const CoordinatorSaid& event) {
  if (phase_ == MemberPhase::kJoining) phase_ = MemberPhase::kWaiting;
  std::visit([this](const auto& message) { Hear(message); }, event.message);
}

void Member::SendBeat() {
  next_beat_ = now_ + policy_.node_timeout / kBeatsPerTimeout;
  beats_.push_back(now_);
  bool tells_unfinished = phase_ == MemberPhase::kRunning && std::exchange(owes_unfinished_, false);
  Do(Send{Beat{++last_beat_, tells_unfinished ? unfinished_ : std::nullopt}});
}

void Member::Hear(const Beat& message) {
  uint64_t before = last_beat_ - beats_.size();  // those are answered, or of another connection
  if (message.number <= before || message.number > last_beat_) return;
  auto answered = beats_.begin() + static_cast<std::ptrdiff_t>(message.number - before - 1);
  acknowledged_ = std::max(acknowledged_, *answered);
  beats_.erase(beats_.begin(), answered + 1);
}

// The first one answers the hello.
void Member::Hear(const Waiting& message) {
  acknowledged_ = std::max(acknowledged_, hello_sent_);
  if (!message.text.empty()) Do(ShowRoll{message.text});
}

void Member::Hear(const Refusal& message) {
  if (phase_ == MemberPhase::kRunning) StopHere(message.text, false, false);
  EndWhenStopped(kExitNoRendezvous, "the coordinator refuses this node: " + message.text);
}

// --- A round ---

void Member::Hear(const Prepare& message) {
  bool may = phase_ == MemberPhase::kWaiting || phase_ == MemberPhase::kPreparing ||
             phase_ == MemberPhase::kPrepared || phase_ == MemberPhase::kDone;
  if (!may || end_ || message.round <= about_.round) return;
  phase_ = MemberPhase::kPreparing;
  about_.round = message.round;
  about_.attempts = std::max(about_.attempts, message.attempt);
  about_.failure.reset();
  Do(MakeReady{message});
}

void Member::On(const Ready& event) {
  if (phase_ != MemberPhase::kPreparing || event.round != about_.round) return;
  phase_ = MemberPhase::kPrepared;
  Do(Send{Prepared{event.round, event.store_port, event.own_addresses}});
}

void Member::Hear(const Go& message) {
  if (phase_ != MemberPhase::kPrepared || message.round != about_.round) return;
  phase_ = MemberPhase::kRunning;
  is_killing_ = false;
  unfinished_.reset();
  owes_unfinished_ = false;
  about_.attempts += 1;
  Do(StartWorkers{message});
}

void Member::On(const PartFailed& event) {
  bool is_in_round = phase_ == MemberPhase::kPreparing || phase_ == MemberPhase::kPrepared ||
                     phase_ == MemberPhase::kRunning;
  if (!is_in_round || end_) return;
  about_.failure = event.cause;
  phase_ = phase_ == MemberPhase::kRunning ? MemberPhase::kStopping : MemberPhase::kWaiting;
  Do(Send{Failed{about_.round, event.cause}});
}

void Member::On(const WorkersOver& event) {
  if (!SomethingRuns()) return;
  about_.stuck.reset();
  bool is_done = event.have_succeeded && phase_ == MemberPhase::kRunning && !end_;
  phase_ = is_done ? MemberPhase::kDone : MemberPhase::kWaiting;
  if (is_done) {
    Do(Send{Done{about_.round}});
  } else {
    Do(Send{Stopped{about_.round}});
  }
  if (end_) End(end_->exit_code, end_->text);
}

void Member::On(const WorkersLeft& event) {
  if (phase_ != MemberPhase::kRunning) return;
  unfinished_ = event.local_ranks;
  owes_unfinished_ = true;
}

void Member::On(const WorkersStuck& event) {
  if (phase_ != MemberPhase::kStopping) return;
  about_.stuck = event.process;
  Do(Send{Stuck{about_.round, event.process}});
}

void Member::Hear(const Stop& message) {
  if (message.round != about_.round) return;
  if (phase_ == MemberPhase::kRunning) return StopHere(message.why, message.is_failure, false);
  bool nothing_runs = phase_ == MemberPhase::kPreparing || phase_ == MemberPhase::kPrepared ||
                      phase_ == MemberPhase::kDone || phase_ == MemberPhase::kWaiting;
  if (!nothing_runs) return;
  phase_ = MemberPhase::kWaiting;
  Do(Send{Stopped{message.round}});
}

void Member::StopHere(const std::string& why, bool is_failure, bool at_once) {
  phase_ = MemberPhase::kStopping;
  is_killing_ = at_once;
  if (IsMutated(Mutation::kToldBeforeReaped)) Do(Send{Stopped{about_.round}});
  Do(StopWorkers{why, is_failure, at_once});
}

// --- The end ---

void Member::On(const LeaveWanted& event) {
  if (phase_ == MemberPhase::kFinished) return;
  Wish(Leave{event.why});
  if (phase_ == MemberPhase::kRunning) phase_ = MemberPhase::kStopping;
  EndWhenStopped(kExitDrained, "");
}

// What is asked for while the link is down is asked again when it is up.
void Member::Wish(MemberMessage message) {
  Do(Send{message});
  wish_ = std::move(message);
}

void Member::On(const CloseWanted& event) {
  if (phase_ == MemberPhase::kFinished) return;
  Wish(Close{event.cause});
  if (phase_ == MemberPhase::kRunning) phase_ = MemberPhase::kStopping;
  EndWhenStopped(event.cause.exit_code, "");
}

void Member::Hear(const Finish& message) {
  bool is_ours = message.round == about_.round &&
                 (phase_ == MemberPhase::kDone || phase_ == MemberPhase::kFinished);
  if (!is_ours) return;
  phase_ = MemberPhase::kFinished;
  Do(Send{FinishSeen{message.round}});
}

void Member::Hear(const Verdict& message) {
  if (phase_ == MemberPhase::kRunning) StopHere(message.text, message.exit_code != 0, false);
  EndWhenStopped(message.exit_code, message.text);
}

// The first reason stays, and whoever knows of the success has succeeded.
void Member::EndWhenStopped(int exit_code, std::string text) {
  if (!end_) end_ = EndNode{exit_code, std::move(text)};
  if (phase_ == MemberPhase::kFinished) end_ = EndNode{0, ""};
  if (SomethingRuns()) return;
  Do(Send{Stopped{about_.round}});
  End(end_->exit_code, end_->text);
}

void Member::Do(MemberAction action) { actions_.push_back(std::move(action)); }

void Member::End(int exit_code, std::string text) {
  phase_ = MemberPhase::kOver;
  Do(EndNode{exit_code, std::move(text)});
}

// --- Time ---

void Member::JoinInTime() {
  if (now_ >= since_ + policy_.join_timeout) {
    return EndWhenStopped(
        kExitNoRendezvous,
        "found no coordinator within " + FormatSeconds(policy_.join_timeout) + ": " + why_down_);
  }
  if (refused_since_ && now_ >= *refused_since_ + policy_.refusal_timeout) {
    EndWhenStopped(kExitNoRendezvous, "found no coordinator: " + why_down_);
  }
}

void Member::OnTime() {
  if (phase_ == MemberPhase::kOver) return;
  if (phase_ == MemberPhase::kJoining) return JoinInTime();
  if (is_up_ && now_ >= next_beat_) SendBeat();
  std::string lost = "lost the coordinator" + (why_down_.empty() ? "" : ": " + why_down_);
  if (SomethingRuns() && !is_killing_ && now_ >= LeaseEnd()) {
    bool had_failed = phase_ == MemberPhase::kStopping && about_.failure;
    if (!had_failed) {
      about_.failure = Cause{.text = "node " + about_.name + " had lost the coordinator",
                             .exit_code = kExitLostCoordinator,
                             .by_itself = false,
                             .charges_budget = false};
    }
    StopHere(lost, true, true);
  }
  if (end_ || now_ < acknowledged_ + policy_.node_timeout) return;
  EndWhenStopped(
      kExitLostCoordinator,
      lost + "; no word for " + FormatSeconds(policy_.node_timeout) + " (--node-timeout)");
}

}  // namespace rankrun::agent
