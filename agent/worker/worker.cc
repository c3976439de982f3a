#include "agent/worker/worker.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "agent/health/process_facts.h"
#include "agent/job/job_signals.h"
#include "agent/process/descendants.h"
#include "agent/worker/signal_target.h"
#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "base/status/activity.h"
#include "base/status/ticks.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {

Worker::Worker(Loop& loop, int local_rank, int global_rank, Streams streams,
               std::function<void()> on_exit)
    : loop_(loop), streams_(std::move(streams)), on_exit_(std::move(on_exit)) {
  record_.local_rank = local_rank;
  record_.global_rank = global_rank;
}

Result<void> Worker::Prepare() {
  auto page = StatusPage::Create();
  if (!page) return std::move(page).error();
  if (auto ready = streams_.standard_output->Prepare(); !ready) return ready;
  if (auto ready = streams_.standard_error->Prepare(); !ready) return ready;
  status_page_ = std::make_shared<StatusPage>(*std::move(page));
  return {};
}

void Worker::Equip(SpawnSpec& spec) const {
  spec.stdout_fd = streams_.standard_output->worker_end();
  spec.stderr_fd = streams_.standard_error->worker_end();
  spec.status_page_fd = status_page_->fd();
}

void Worker::OnStarted(SpawnedProcess process) {
  streams_.standard_output->Start();
  streams_.standard_error->Start();
  pid_ = process.pid;
  record_.pid = process.pid;
  handle_ = std::move(process.handle);
  auto poll = Poll::Open(loop_, handle_.fd(), [this] { CheckExit(); });
  RANKRUN_CHECK(static_cast<bool>(poll), "cannot watch a process");
  exit_poll_ = std::move(*poll);
  exit_poll_->Start();
  for (int signal_number : std::exchange(early_signals_, {})) {
    if (Pass(signal_number, {*pid_})) continue;
    LogWarn(SignalName(signal_number) + " came while rank " + std::to_string(record_.global_rank) +
            " was starting, and it does not handle it yet");
  }
}

void Worker::OnStartFailed(Error error) {
  streams_.standard_output->GiveUp();
  streams_.standard_error->GiveUp();
  record_.start_error = std::move(error);
}

void Worker::OnPostponed() {
  streams_.standard_output->TakeBack();
  streams_.standard_error->TakeBack();
  status_page_.reset();
}

void Worker::NoteActivity() {
  if (!status_page_ || !record_.activity.what.empty()) return;
  const uint64_t now = Ticks();
  record_.activity = ReadActivity(*status_page_);
  if (record_.noted_ticks == 0 || !record_.activity.what.empty()) record_.noted_ticks = now;
}

void Worker::Signal(int signal_number) {
  if (!pid_) return;
  NoteActivity();
  if (record_.sent_signal == SIGKILL) {
    LogWarn("rank " + std::to_string(record_.global_rank) +
            " has not died of SIGKILL: " + DescribeProcess(*pid_));
  }
  record_.sent_signal = signal_number;
  SendEndSignal(signal_number);
}

void Worker::SignalAgain() {
  if (!pid_ || record_.sent_signal == 0) return;
  SendEndSignal(record_.sent_signal);
}

// Children such as those of PyTorch's data loaders die of a signal that the worker handles, and
// it needs them to save.
void Worker::SendEndSignal(int signal_number) {
  const std::string status = ReadOfProcess(*pid_, "status");
  const bool alone = TakesSignalAlone(*pid_, status, signal_number);
  kill(alone ? *pid_ : -*pid_, signal_number);
  if (!IsTraced(status)) kill(-*pid_, SIGCONT);
  group_signalled_ |= !alone;
}

bool Worker::HasSignalled(pid_t leftover) const {
  return group_signalled_ && getpgid(leftover) == record_.pid;
}

bool Worker::Pass(int signal_number, const std::vector<pid_t>& descendants) {
  // It may run already, although its pid is not known yet.
  if (record_.pid == 0) early_signals_.push_back(signal_number);
  if (!pid_) return true;
  const bool is_notice = IsNotice(signal_number);
  if (is_notice && !PassNotice(signal_number, descendants)) return false;
  bool resized = signal_number == SIGWINCH;
  if (resized && !streams_.standard_output->FollowTerminalSize()) return true;
  if (!resized) record_.passed_signal = signal_number;
  if (!is_notice) kill(-*pid_, signal_number);
  return true;
}

bool Worker::PassNotice(int signal_number, const std::vector<pid_t>& descendants) const {
  const std::string status = ReadOfProcess(*pid_, "status");
  if (TakesSignalAlone(*pid_, status, signal_number)) return kill(*pid_, signal_number) == 0;
  bool passed = false;
  for (pid_t pid : descendants) {
    if (getpgid(pid) != *pid_ || !HandlesSignal(pid, signal_number)) continue;
    passed |= SignalDescendant(pid, signal_number);
  }
  return passed;
}

void Worker::CheckExit() {
  if (!pid_ || !handle_.HasEnded()) return;
  record_.exit = handle_.Reap();
  if (!record_.exit) {
    // A debugger has not let it go yet. SIGCHLD follows when it does; the handle is readable
    // all the time.
    exit_poll_->Stop();
    return;
  }
  NoteActivity();
  record_.ended = std::chrono::steady_clock::now();
  pid_.reset();
  exit_poll_->Stop();
  streams_.standard_output->CatchUp();
  streams_.standard_error->CatchUp();
  // Shows whether the worker lost a peer. TakeRecord adds later output.
  if (record_.failed()) record_.stderr_tail = streams_.standard_error->Tail();
  on_exit_();
}

WorkerSample Worker::Sample() const {
  WorkerSample sample{.global_rank = record_.global_rank, .local_rank = record_.local_rank};
  sample.taken = std::chrono::steady_clock::now();
  sample.has_ended = record_.exit && record_.exit->succeeded();
  if (sample.has_ended) sample.ended_for = *sample.taken - record_.ended;
  if (!pid_) return sample;
  sample.pid = *pid_;
  sample.is_saving = status_page_->saving();
  sample.cpu_time = CpuTimeOf(*pid_);
  sample.groups = ReadGroups(*status_page_);
  sample.uses_library = ReadLibraryUse(*status_page_);
  AwaitedActivity awaited = ReadAwaited(*status_page_);
  sample.awaited = std::move(awaited.what);
  sample.awaited_rank = awaited.global_rank;
  sample.awaited_for = awaited.lasted;
  return sample;
}

void Worker::PublishPeerDeath(std::string_view message) {
  if (!status_page_ || record_.exit) return;
  NoteActivity();
  status_page_->PublishPeerDeath(message);
}

void Worker::PublishDebuggerEnd(uint32_t hold) {
  if (!status_page_) return;
  // The worker does not write it.
  for (uint32_t i = status_page_->debuggers_ended(); i < hold; ++i) {
    status_page_->CountDebuggerEnd();
  }
}

std::optional<StepNotice> Worker::LastStep() const {
  return status_page_ ? ReadStep(*status_page_) : std::nullopt;
}

WorkerRecord Worker::TakeRecord() {
  // Include the output of its last descendants.
  streams_.standard_output->Finish();
  streams_.standard_error->Finish();
  record_.stdout_tail = streams_.standard_output->Tail();
  record_.stderr_tail = streams_.standard_error->Tail();
  record_.stdout_file = streams_.standard_output->file();
  record_.stderr_file = streams_.standard_error->file();
  record_.status_page = status_page_;
  return std::move(record_);
}

void Worker::ReleaseDescriptors() {
  if (!record_.exit) return;
  exit_poll_.reset();  // first: it watches a descriptor number that may be reused
  handle_ = {};
  streams_.standard_output->Release();
  streams_.standard_error->Release();
}

void Worker::ShowOpenLine() {
  streams_.standard_output->ShowOpenLine();
  streams_.standard_error->ShowOpenLine();
}

void Worker::ResumeOutput() {
  streams_.standard_output->Resume();
  streams_.standard_error->Resume();
}

}  // namespace rankrun::agent
