#include "tests/cluster/workers.h"

#include <signal.h>

#include <utility>

#include "agent/report/verdict.h"

namespace rankrun::cluster {
namespace {

constexpr milliseconds kVictimGrace{500};  // as of the agent's
constexpr char kTraceback[] = "Traceback (most recent call last):\n  File \"train.py\", line 3\n";

}  // namespace

Workers::Workers(Stage& stage, int node, std::function<agent::Membership&()> membership)
    : stage_(stage),
      node_(node),
      name_("n" + std::to_string(node)),
      membership_(std::move(membership)) {}

void Workers::Plan(Duration delay, std::function<void()> what) {
  PlanForAgent(delay, [this, number = attempt_number_, what = std::move(what)] {
    if (number == attempt_number_) what();
  });
}

void Workers::PlanForAgent(Duration delay, std::function<void()> what) {
  stage_.After(delay, [this, alive = alive_, what = std::move(what)] {
    if (!*alive) return;
    if (stage_.IsAwake(node_)) return what();
    PlanForAgent(stage_.frozen_until[node_] - test::VirtualNow() + milliseconds(1), what);
  });
}

void Workers::Start(const agent::NodePlace& place) {
  stage_.Trace(name_, "starts attempt " + std::to_string(place.attempt));
  stage_.checker.OnStart(node_, place, test::VirtualNow());
  attempt_number_ += 1;
  place_ = place;
  phase_ = Phase::kRunning;
  failed_.reset();
  success_.reset();
  has_lost_peer_ = failure_is_told_ = have_succeeded_ = stopped_for_failure_ = false;
  const milliseconds length =
      stage_.dice.Between(static_cast<int>(stage_.plan.shortest_run.count()),
                          static_cast<int>(stage_.plan.longest_run.count()));
  const bool fails = !stage_.is_calm && stage_.dice.Chance(stage_.plan.worker_fails_percent);
  Plan(length, [this, fails] {
    if (fails) return Fail();
    if (phase_ == Phase::kRunning && !failed_) Over(true);
  });
}

void Workers::Fail() {
  // With two culprits, either may be the cause.
  if (phase_ != Phase::kRunning || failed_ || stage_.checker.HasCulprit(place_.attempt)) return;
  failed_ = stage_.dice.Below(kWorkersPerNode);
  stage_.Trace(name_, "rank " + std::to_string(FirstRank() + *failed_) + " fails");
  stage_.checker.OnCulprit(place_.attempt, FirstRank() + *failed_);
  stage_.on_peers_lost(node_);
  BeginStop(false);
}

void Workers::LosePeer() {
  if (phase_ != Phase::kRunning || failed_) return;
  if (!stage_.dice.Chance(stage_.plan.peers_notice_percent)) return;
  Plan(stage_.dice.Between(1, 30), [this] {
    if (phase_ != Phase::kRunning || failed_) return;
    failed_ = stage_.dice.Below(kWorkersPerNode);
    has_lost_peer_ = true;
    stage_.Trace(name_, "rank " + std::to_string(FirstRank() + *failed_) + " has lost a peer");
    Plan(kVictimGrace, [this] { BeginStop(false); });
  });
}

void Workers::BeginStop(bool at_once) {
  if (phase_ != Phase::kRunning) return;
  phase_ = Phase::kStopping;
  TellFailure();
  Plan(stage_.dice.Between(1, at_once ? 20 : 300), [this] { Over(false); });
}

void Workers::TellFailure() {
  if (!failed_ || std::exchange(failure_is_told_, true)) return;
  membership_().NoteFailure({.text = RankFailed(FirstRank() + *failed_),
                             .exit_code = has_lost_peer_ ? 1 : kFailureCode,
                             .rank = FirstRank() + *failed_,
                             .is_primary = !has_lost_peer_});
}

void Workers::Stop(const agent::StopWorkers& order) {
  stopped_for_failure_ |= order.is_failure;
  const bool is_running = phase_ != Phase::kNone;
  Plan(Duration::zero(), [this, is_running, order] {
    if (is_running) return BeginStop(order.at_once);
    membership_().NoteWorkersOver(false);
  });
}

void Workers::Over(bool have_succeeded) {
  stage_.Trace(name_, have_succeeded ? "workers have succeeded" : "workers are gone");
  have_succeeded_ = have_succeeded;
  phase_ = Phase::kNone;
  stage_.checker.OnWorkersGone(node_);
  if (failed_ || stopped_for_failure_) {
    SendPart(Record());
  } else {
    success_ = Record();
  }
  membership_().NoteWorkersOver(have_succeeded);
}

void Workers::ReportSuccess() {
  stopped_for_failure_ = true;
  if (success_) SendPart(*std::exchange(success_, std::nullopt));
}

// It is sent once its evidence is complete.
void Workers::SendPart(agent::AttemptRecord record) {
  membership_().AnnounceReport(record.attempt);
  PlanForAgent(stage_.dice.Between(1, 200), [this, record] { membership_().SendReport(record); });
}

agent::AttemptRecord Workers::Record() const {
  agent::AttemptRecord record;
  record.attempt = place_.attempt;
  for (int i = 0; i < kWorkersPerNode; ++i) {
    agent::WorkerRecord worker;
    worker.global_rank = FirstRank() + i;
    worker.local_rank = i;
    worker.pid = 1000 + worker.global_rank;
    if (have_succeeded_) {
      worker.exit = ProcessExit{.signaled = false, .value = 0};
    } else if (failed_ == i) {
      const char* error = has_lost_peer_ ? "ConnectionResetError: [Errno 104] Connection reset "
                                           "by peer\n"
                                         : "ValueError: no data\n";
      worker.exit = ProcessExit{.signaled = false, .value = has_lost_peer_ ? 1 : kFailureCode};
      worker.stderr_tail = std::string(kTraceback) + error;
      record.cause = static_cast<size_t>(i);
    } else {
      worker.exit = ProcessExit{.signaled = true, .value = SIGTERM};
      worker.sent_signal = SIGTERM;
    }
    record.ended.push_back(static_cast<size_t>(i));
    record.workers.push_back(std::move(worker));
  }
  agent::Judge(record, /*has_all_workers=*/false);
  return record;
}

}  // namespace rankrun::cluster
