#include <set>
#include <string>
#include <utility>

#include "agent/health/stack_suspect.h"
#include "agent/job/environment.h"
#include "agent/job/exit_codes.h"
#include "agent/process/descendants.h"
#include "agent/supervisor/inspection.h"
#include "agent/supervisor/supervisor.h"
#include "base/format.h"
#include "base/roll_call.h"

// The part of Supervisor that ends an attempt whose workers hang.

namespace rankrun::agent {
namespace {

constexpr const char* kStuckVariable = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
// The program that takes them may need a little longer.
constexpr std::chrono::milliseconds kStacksBudget{1'500};

std::set<int> EndedOf(const std::vector<WorkerSample>& samples) {
  std::set<int> ended;
  for (const WorkerSample& sample : samples) {
    if (sample.has_ended) ended.insert(sample.global_rank);
  }
  return ended;
}

}  // namespace

HealthMonitor::Callbacks Supervisor::OnHealth() {
  auto send = [this](std::vector<WorkerSample> samples, std::vector<WaitingClient> clients) {
    membership_->SendHealth(std::move(samples), std::move(clients));
  };
  decltype(HealthMonitor::Callbacks::send) send_if_needed;
  if (spec_.nodes) send_if_needed = send;  // membership_ is opened later
  auto on_hang = [this](const HangVerdict& verdict) {
    const bool sees_all = attempt_ && membership_ == nullptr;
    OnHang(sees_all ? WithSuspect(verdict, DigestsOf(attempt_->Samples(), stacks_.taken()))
                    : verdict);
  };
  return {.samples =
              [this] {
                bool runs = attempt_ && state_.phase == Phase::kRunning;
                return runs ? attempt_->Samples() : std::vector<WorkerSample>();
              },
          .show = [this](const std::string& line) { output_.Say(line); },
          .on_hang = on_hang,
          .workers = [this] { return attempt_ ? attempt_->Running() : std::vector<pid_t>(); },
          .on_stuck = [this](pid_t worker) { OnStuck(worker); },
          .stuck_limit = StuckLimit(VariableOf(spec_.environment, kStuckVariable).value_or("")),
          .on_unfinished = [this](const HangVerdict& verdict) { OnUnfinished(verdict); },
          .finish_limit = spec_.finish_timeout,
          .store_waits =
              [this] {
                auto waits = store_.Waits();
                if (inspection_) inspection_->NoteStoreWaits(waits);
                return waits;
              },
          .store_port = [this] { return place_.master_port; },
          .store_changes = [this] { return store_.Changes(); },
          .send = send_if_needed,
          .take_stacks =
              [this](std::vector<pid_t> workers, std::function<void()> done) {
                stacks_.Take(std::move(workers), kStacksBudget, std::move(done));
              },
          .on_quiet =
              [this](std::vector<WorkerSample> workers, Duration quiet) {
                quiet_notice_.Show(std::move(workers), quiet, membership_ == nullptr);
              }};
}

// Records the causes before any worker is signalled, because the ends of all then look alike.
void Supervisor::OnHang(const HangVerdict& verdict) {
  if (!attempt_ || state_.phase != Phase::kRunning) return;
  std::vector<int> ranks;
  for (const auto& [global_rank, why] : verdict.causes) {
    int64_t local_rank = int64_t{global_rank} - place_.first_rank;
    if (local_rank < 0 || local_rank >= spec_.workers) continue;  // on another node
    attempt_->NoteHang(static_cast<int>(local_rank), why);
    ranks.push_back(global_rank);
  }
  bool has_cause_elsewhere = ranks.empty() && !verdict.causes.empty();
  bool reports = int64_t{verdict.reporter} - place_.first_rank < spec_.workers &&
                 verdict.reporter >= place_.first_rank;
  if (has_cause_elsewhere || (ranks.empty() && !reports)) return;
  output_.Say("rankrun: --hang-timeout: " + verdict.text + "; stopping the workers\n");
  std::string text = ranks.empty() ? "the workers hang: " + verdict.text
                                   : RanksInWords(ranks) + " hung: " + verdict.causes.at(ranks[0]);
  if (ranks.empty()) health_.NoteOwnCause(text);
  // As a failure of this node, so that all nodes stop.
  part_.failure =
      Cause{.text = text, .exit_code = kExitHang, .rank = ranks.empty() ? -1 : ranks[0]};
  part_.failure_is_told = false;
  TellFailure();
  event_log_->NoteHang(text);
  attempt_->PublishPeerDeath(text);
  Post(WorkersHang{});
}

// No restart follows, because a worker has done its work.
void Supervisor::OnUnfinished(const HangVerdict& unfinished) {
  std::vector<int> left = attempt_ ? attempt_->Unfinished() : std::vector<int>();
  if (left.empty() || state_.phase != Phase::kRunning) return;
  const std::vector<WorkerSample> samples = attempt_->Samples();
  const HangVerdict verdict =
      WithAwaitedEnd(unfinished, EndedOf(samples), DigestsOf(samples, stacks_.taken()));
  for (const auto& [global_rank, why] : verdict.causes) {
    attempt_->NoteHang(global_rank - place_.first_rank, why + " (--finish-timeout)");
  }
  const std::string text = "not finished " + FormatSeconds(*spec_.finish_timeout) +
                           " after the first worker (--finish-timeout): " + verdict.text;
  output_.Say("rankrun: " + text + "; stopping the workers\n");
  event_log_->NoteHang(text);
  attempt_->PublishPeerDeath(text);
  CloseJob(text, kExitHang);
  const auto cause = verdict.causes.begin();
  Post(
      WorkerStuck{cause == verdict.causes.end() ? left.front() : cause->first - place_.first_rank});
}

void Supervisor::OnHealthOrder(const HealthOrder& order) {
  if (std::holds_alternative<HealthWanted>(order)) health_.WantSamples();
  if (const auto* notice = std::get_if<HangNotice>(&order)) {
    output_.Say("rankrun: " + notice->text + "\n");
  }
  if (std::holds_alternative<StacksWanted>(order)) {
    health_.TakeStacks([this] {
      if (attempt_) membership_->SendStacks(DigestsOf(attempt_->Samples(), stacks_.taken()));
    });
  }
  const auto* found = std::get_if<HangFound>(&order);
  if (found == nullptr) return;
  HangVerdict verdict{.text = found->text, .reporter = found->reporter};
  for (const HungRank& hung : found->ranks) verdict.causes[hung.rank] = hung.why;
  for (const HungRank& hung : found->ranks) verdict.witnesses.push_back(hung.rank);
  if (found->ranks.empty()) verdict.witnesses.push_back(found->reporter);
  health_.OnOrder(std::move(verdict));
}

void Supervisor::OnStuck(pid_t worker) {
  auto local_rank = attempt_ ? attempt_->LocalRankOf(worker) : std::nullopt;
  if (!local_rank || state_.phase != Phase::kRunning) return;
  std::string has_hung =
      RanksInWords({place_.first_rank + *local_rank}) + " has hung in the kernel";
  output_.Say("rankrun: " + has_hung + " for longer than " + kStuckVariable +
              " allows: " + DescribeProcess(worker) + "; the job has failed\n");
  attempt_->PublishPeerDeath(has_hung);
  CloseJob(has_hung, kExitHang);
  Post(WorkerStuck{*local_rank});
}

}  // namespace rankrun::agent
