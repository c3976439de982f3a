#include "agent/worker/attempt.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "agent/job/job_signals.h"
#include "agent/process/descendants.h"
#include "agent/report/torch_calls.h"
#include "agent/report/verdict.h"
#include "agent/worker/program_arguments.h"
#include "agent/worker/worker_environment.h"
#include "base/log.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

constexpr int kStartRetries = 10;
constexpr std::chrono::seconds kRetryPause{1};

// Higher than the agent's own score: when memory runs out, the kernel should
// kill a worker and not the agent that reports its end.
int WorkersOomScore() {
  constexpr int kRaise = 500;
  constexpr int kHighest = 1000;
  return std::min(kHighest, std::atoi(ReadOfProcess(getpid(), "oom_score_adj").c_str()) + kRaise);
}

std::string NodeNameOf(const JobSpec& spec) { return spec.nodes ? spec.nodes->node_name : ""; }

}  // namespace

Attempt::Attempt(const Context& context, NodePlace place, Callbacks callbacks)
    : context_(context),
      place_(std::move(place)),
      callbacks_(std::move(callbacks)),
      torch_dumps_(context_.output.logs() != nullptr
                       ? context_.output.logs()->TorchDumps(place_.attempt)
                       : ""),
      environment_(context_.spec, {.node = place_,
                                   .save_fifo = context_.save_fifo,
                                   .timer_file = context_.timer_file,
                                   .breakpoint_pipe = context_.breakpoint_pipe,
                                   .trace_dir = context_.output.trace_dir(),
                                   .torch_dumps = torch_dumps_}),
      oom_score_(WorkersOomScore()),
      started_(std::chrono::steady_clock::now()),
      retries_left_(kStartRetries),
      retry_(context_.loop, [this] { Retry(); }),
      release_(context_.loop, [this] {
        for (auto& worker : workers_) worker->ReleaseDescriptors();
      }) {
  if (context_.spec.output.standard_input.reader == StdinPlan::Reader::kAll) {
    feed_ = std::make_unique<StdinFeed>(context_.loop, context_.input, context_.spec.workers);
  }
  loans_ = LoansOfTerminal();
  JobOutput& output = context_.output;
  output.BeginAttempt(place_.attempt, place_.first_rank);
  for (int rank = 0; rank < context_.spec.workers; ++rank) {
    Worker::Streams streams{
        .standard_output = output.StreamFor(place_.attempt, rank, Console::kStdout),
        .standard_error = output.StreamFor(place_.attempt, rank, Console::kStderr)};
    workers_.push_back(std::make_unique<Worker>(context_.loop, rank, place_.first_rank + rank,
                                                std::move(streams),
                                                [this, rank] { OnEnded(rank); }));
  }
}

Attempt::~Attempt() {
  workers_.clear();  // first: their streams write to the attempt's output
  context_.output.EndAttempt();
}

void Attempt::Start() {
  for (int rank = 0; rank < context_.spec.workers; ++rank) StartWorker(rank);
  memory_before_ = ReadMemoryEvents();  // in parallel with the spawner
}

void Attempt::StartWorker(int local_rank) {
  if (auto prepared = Prepare(local_rank); !prepared) {
    Error error = std::move(prepared).error();
    context_.loop.Post([this, local_rank, error] { OnStartResult(local_rank, error); });
    return;
  }
  context_.spawner.Start(
      SpecFor(local_rank),
      [this, local_rank](Result<SpawnedProcess> result) {
        OnStartResult(local_rank, std::move(result));
      },
      context_.fork);
}

Result<void> Attempt::Prepare(int local_rank) {
  if (feed_ != nullptr) {
    if (auto ready = feed_->Prepare(local_rank); !ready) return ready;
  }
  auto prepared = workers_[static_cast<size_t>(local_rank)]->Prepare();
  if (loans_ != nullptr && prepared) {
    if (auto ready = loans_->Prepare(local_rank); !ready) LogInfo(ready.error().message);
  }
  return prepared;
}

std::unique_ptr<StdinLoans> Attempt::LoansOfTerminal() {
  const StdinPlan& plan = context_.spec.output.standard_input;
  if (plan.reader != StdinPlan::Reader::kOne || !context_.input.HasTerminal()) return nullptr;
  StdinLoans::Ranks ranks{.first = place_.first_rank, .workers = context_.spec.workers};
  if (place_.node_rank == 0) ranks.owner = plan.local_rank;
  return std::make_unique<StdinLoans>(
      context_.loop, context_.input, ranks,
      StdinLoans::Callbacks{
          .show_prompt = [this](int rank) { workers_[static_cast<size_t>(rank)]->ShowOpenLine(); },
          .show =
              [this](const std::string& notice) {
                context_.output.Say("rankrun: " + notice + "\n");
              },
          .on_line = [this] { context_.output.NoteTypedLine(); }});
}

int Attempt::StdinFor(int local_rank) const {
  const StdinPlan& plan = context_.spec.output.standard_input;
  if (feed_ != nullptr) return feed_->worker_end(local_rank);
  const int lent = loans_ != nullptr ? loans_->worker_end(local_rank) : Fd::kNone;
  if (lent != Fd::kNone) return lent;
  bool reads = plan.reader == StdinPlan::Reader::kInherit ||
               (plan.reader == StdinPlan::Reader::kOne && plan.local_rank == local_rank &&
                place_.node_rank == 0);
  return reads ? STDIN_FILENO : context_.null_fd;
}

SpawnSpec Attempt::SpecFor(int local_rank) const {
  const Worker& worker = *workers_[static_cast<size_t>(local_rank)];
  const LogDirectory* logs = context_.output.logs();
  WorkerPlace place{
      .local_rank = local_rank,
      .threads = context_.share.threads[static_cast<size_t>(local_rank)],
      .error_file = logs != nullptr ? logs->ErrorFile(place_.attempt, local_rank) : "",
      .status_path = worker.StatusPath()};
  SpawnSpec spec{.file = context_.spec.program.file,
                 .arguments = ArgumentsFor(context_.spec, local_rank, place_),
                 .environment = environment_.Of(place),
                 .stdin_fd = StdinFor(local_rank),
                 .open_files = context_.spec.open_files,
                 .core_bytes = context_.spec.core_bytes,
                 .oom_score_adj = oom_score_,
                 .cpus = CpusOf(context_.share, local_rank)};
  worker.Equip(spec);
  if (logs != nullptr) {
    std::string folder = logs->WorkerFolder(place_.attempt, local_rank);
    const bool is_shared = folder == logs->AttemptFolder(place_.attempt);
    // On the spawner's thread, because the file system may hang.
    spec.before = [folder = std::move(folder),
                   made = is_shared ? attempt_folder_ : std::make_shared<std::once_flag>()] {
      std::call_once(*made, [&folder] {
        if (auto done = MakeFolders(folder); !done) LogWarn(done.error().message);
      });
    };
  }
  return spec;
}

void Attempt::OnStartResult(int local_rank, Result<SpawnedProcess> result) {
  const bool is_retry = retried_ == local_rank;
  if (is_retry) retried_.reset();
  if (is_retry && result) retries_left_ = kStartRetries;
  const bool is_exhausted = !result && result.error().code == ErrorCode::kExhausted;
  if (is_exhausted && retries_left_ > 0 && !stopping_) {
    workers_[static_cast<size_t>(local_rank)]->OnPostponed();
    retry_reason_ = result.error().message;
    postponed_.insert(local_rank);
    retry_.Start(kRetryPause);
    return;
  }
  Conclude(local_rank, std::move(result));
  if (is_retry) RetryNext();
}

void Attempt::Conclude(int local_rank, Result<SpawnedProcess> result) {
  Worker& worker = *workers_[static_cast<size_t>(local_rank)];
  if (result) {
    worker.OnStarted(std::move(*result));
    if (feed_ != nullptr) feed_->OnStarted(local_rank);
    if (loans_ != nullptr) loans_->OnStarted(local_rank, worker.record().pid);
    callbacks_.on_started(local_rank);
    return;
  }
  worker.OnStartFailed(std::move(result).error());
  if (feed_ != nullptr) feed_->OnGivenUp(local_rank);
  OnEnded(local_rank);
}

void Attempt::Retry() {
  // The others follow the one under way, or have followed it already.
  if (retried_ || postponed_.empty()) return;
  retries_left_ -= 1;
  std::string workers = postponed_.size() == 1
                            ? "1 worker waits: "
                            : std::to_string(postponed_.size()) + " workers wait: ";
  LogWarn(workers + retry_reason_ + "; trying again");
  RetryNext();
}

// One after the other: workers that prepare for their starts together may leave nothing for
// any start.
void Attempt::RetryNext() {
  if (postponed_.empty()) return;
  retried_ = *postponed_.begin();
  postponed_.erase(postponed_.begin());
  StartWorker(*retried_);
}

void Attempt::OnEnded(int local_rank) {
  const WorkerRecord& record = workers_[static_cast<size_t>(local_rank)]->record();
  ended_.push_back(static_cast<size_t>(local_rank));
  if (loans_ != nullptr) loans_->OnEnded(local_rank);
  release_.Start(std::chrono::milliseconds(0));
  bool stops_others = record.failed() && !stopping_ && !context_.spec.continue_on_failure;
  const EndKind kind = EndKindOf(record);
  if (stops_others) {
    // Published here, so that it precedes the signal to the other workers; that of a possible
    // victim only if they get the signal, because they may end with the cause before.
    std::string message = PeerDeathMessage(record, NodeNameOf(context_.spec));
    if (!MayBeVictim(kind)) {
      PublishPeerDeath(message);
    } else if (victims_death_.empty()) {
      victims_death_ = std::move(message);
    }
  }
  callbacks_.on_ended(record, kind);
}

void Attempt::PublishPeerDeath(std::string_view message) {
  for (auto& worker : workers_) worker->PublishPeerDeath(message);
}

void Attempt::SignalAllBut(const std::set<int>& spared_local_ranks, int signal_number) {
  stopping_ = true;
  if (!victims_death_.empty()) PublishPeerDeath(std::exchange(victims_death_, {}));
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!spared_local_ranks.contains(static_cast<int>(i))) workers_[i]->Signal(signal_number);
  }
  // Give up the starts that were postponed.
  retry_.Stop();
  for (int local_rank : std::exchange(postponed_, {})) {
    Conclude(local_rank,
             Error{ErrorCode::kCancelled, "not started, because the attempt is being stopped"});
  }
}

void Attempt::Signal(int signal_number, int local_rank) {
  workers_[static_cast<size_t>(local_rank)]->Signal(signal_number);
}

std::vector<int> Attempt::Pass(int signal_number) {
  const auto descendants = IsNotice(signal_number) ? Descendants() : std::vector<pid_t>();
  std::vector<int> without;
  for (auto& worker : workers_) {
    if (!worker->Pass(signal_number, descendants)) without.push_back(worker->record().global_rank);
  }
  return without;
}

bool Attempt::SparesLeftover(pid_t pid, int signal_number) const {
  const pid_t session = getsid(pid);
  auto has_session = [&](const auto& worker) { return worker->record().pid == session; };
  auto owner = std::ranges::find_if(workers_, has_session);
  if (owner == workers_.end()) return false;  // it has a session of its own
  if (!(*owner)->WasStopped()) return false;
  return signal_number == SIGKILL || (*owner)->HasSignalled(pid);
}

std::vector<WorkerSaves> Attempt::TakeSavingChanges() {
  std::vector<WorkerSaves> changes;
  for (auto& worker : workers_) {
    int local_rank = worker->record().local_rank;
    bool saving = worker->IsSaving();
    if (saving == saving_.contains(local_rank)) continue;
    if (saving) {
      saving_.insert(local_rank);
    } else {
      saving_.erase(local_rank);
    }
    changes.push_back({.local_rank = local_rank, .saving = saving});
  }
  return changes;
}

std::vector<WorkerSample> Attempt::Samples() const {
  std::vector<WorkerSample> samples;
  for (auto& worker : workers_) {
    samples.push_back(worker->Sample());
    samples.back().node = NodeNameOf(context_.spec);
    samples.back().is_at_prompt = loans_ != nullptr && loans_->Waits(samples.back().local_rank);
  }
  return samples;
}

std::vector<pid_t> Attempt::Running() const {
  std::vector<pid_t> pids;
  for (auto& worker : workers_) {
    if (worker->IsProcess(worker->record().pid)) pids.push_back(worker->record().pid);
  }
  return pids;
}

std::vector<WorkerStep> Attempt::LastSteps() const {
  std::vector<WorkerStep> steps;
  for (const auto& worker : workers_) {
    auto last = worker->LastStep();
    if (last) steps.push_back({worker->record().local_rank, last->step, last->at});
  }
  return steps;
}

std::vector<int> Attempt::Unfinished() const {
  std::set<size_t> ended(ended_.begin(), ended_.end());
  std::vector<int> unfinished;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!ended.contains(i)) unfinished.push_back(static_cast<int>(i));
  }
  return unfinished;
}

std::optional<int> Attempt::LocalRankOf(pid_t pid) const {
  for (auto& worker : workers_) {
    if (worker->IsProcess(pid)) return worker->record().local_rank;
  }
  return std::nullopt;
}

void Attempt::PublishDebuggerEnd(int local_rank, uint32_t hold) {
  Worker& worker = *workers_[static_cast<size_t>(local_rank)];
  worker.PublishDebuggerEnd(hold);
  worker.SignalAgain();
}

void Attempt::NoteHang(int local_rank, const std::string& why) {
  workers_[static_cast<size_t>(local_rank)]->NoteHang(why);
}

std::string Attempt::NoteTimer(const TimerServer::Expired& expired) {
  for (auto& worker : workers_) {
    if (!worker->IsProcess(expired.worker)) continue;
    std::string rank = "rank " + std::to_string(worker->record().global_rank);
    if (expired.pid != expired.worker) return ", below " + rank;
    if (expired.signal_number != 0) {
      worker->NoteTimer({expired.scope, expired.signal_number, expired.at});
    }
    return " (" + rank + ")";
  }
  return "";
}

bool Attempt::CheckExitOf(pid_t pid) {
  for (auto& worker : workers_) {
    if (!worker->IsProcess(pid)) continue;
    worker->CheckExit();
    return true;
  }
  return false;
}

void Attempt::ResumeOutput() {
  for (auto& worker : workers_) worker->ResumeOutput();
}

AttemptRecord Attempt::TakeRecord() {
  AttemptRecord record{.attempt = place_.attempt,
                       .max_restarts = context_.spec.max_restarts,
                       .lasted = std::chrono::steady_clock::now() - started_,
                       .cause = 0,
                       .workers = {},
                       .memory_before = memory_before_};
  for (auto& worker : workers_) {
    WorkerRecord& taken = record.workers.emplace_back(worker->TakeRecord());
    const bool has_input = loans_ != nullptr ? loans_->HasInput(taken.local_rank)
                                             : StdinFor(taken.local_rank) == STDIN_FILENO;
    if (has_input && isatty(STDIN_FILENO) != 0) taken.reads_terminal = true;
    taken.dump_files = TorchDumpFiles(context_.spec.environment, torch_dumps_, taken.global_rank);
  }
  record.ended = ended_;
  record.cause = ChooseCause(record.workers, ended_);
  return record;
}

}  // namespace rankrun::agent
