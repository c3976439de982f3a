#include "agent/preload/preloader.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/job/environment.h"
#include "agent/preload/preload_texts.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/process/helper_file.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kLongImport{20};  // is worth a line
constexpr std::chrono::seconds kAnswerTimeout{30};
constexpr const char* kScript = "preload.py";

TimePoint After(Duration duration) { return std::chrono::steady_clock::now() + duration; }

}  // namespace

Result<std::unique_ptr<Preloader>> Preloader::Create(Options options) {
  Fd interrupt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupt) return SystemError("open an eventfd", errno);
  return std::unique_ptr<Preloader>(new Preloader(std::move(options), std::move(interrupt)));
}

std::optional<Result<SpawnedProcess>> Preloader::Start(const SpawnSpec& spec) {
  MutexLock lock(mutex_);
  constexpr int kTries = 2;  // one with a process that has ended since its last answer
  for (int i = 0; i < kTries && !is_given_up_; ++i) {
    auto ready = Ready(spec);
    auto process = ready ? Fork(spec) : Result<SpawnedProcess>(std::move(ready).error());
    if (process || is_cancelled_ || has_ended_) return process;
    const Error& error = process.error();
    const bool is_ours = error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kMismatch ||
                         error.code == ErrorCode::kTimeout;
    if (!is_ours && !is_given_up_) return process;
    is_given_up_ |= !has_imported_ || i + 1 == kTries;
    EndProcess();
    if (is_given_up_) LogWarn("--preload: the workers are executed as always: " + error.message);
  }
  return std::nullopt;
}

// Returns when the modules are imported.
Result<void> Preloader::Ready(const SpawnSpec& spec) {
  if (is_cancelled_ || has_ended_) {
    return Error{ErrorCode::kCancelled, "not started, because the attempt is being stopped"};
  }
  if (link_ && has_imported_ && is_to_check_.exchange(false)) {
    if (auto checked = CheckFiles(); !checked) return checked;
  }
  if (!link_) {
    if (auto started = StartProcess(spec); !started) return started;
  }
  return has_imported_ ? Result<void>() : AwaitImports();
}

Result<void> Preloader::StartProcess(const SpawnSpec& spec) {
  auto script = FindHelperFile(kScript, R_OK);
  if (!script) return std::move(script).error();
  Fd theirs;
  auto link = PreloadLink::Open(theirs);
  if (!link) return std::move(link).error();
  const auto options = spec.arguments.begin() + 1 + static_cast<ptrdiff_t>(options_.python_options);
  std::vector<std::string> arguments(spec.arguments.begin(), options);
  arguments.insert(arguments.end(), {*script, options_.modules});
  arguments.insert(arguments.end(), options, spec.arguments.end());
  std::vector<std::string> environment = options_.environment;
  // Libraries read it when they are loaded.
  auto threads = VariableOf(spec.environment, "OMP_NUM_THREADS");
  if (threads) environment.push_back("OMP_NUM_THREADS=" + *threads);
  auto process = SpawnProcess({.file = spec.file,
                               .arguments = std::move(arguments),
                               .environment = std::move(environment),
                               .stdin_fd = options_.null_fd,
                               .stdout_fd = STDERR_FILENO,
                               .stderr_fd = STDERR_FILENO,
                               .status_page_fd = theirs.get(),
                               .open_files = spec.open_files,
                               .core_bytes = spec.core_bytes});
  if (!process) return std::move(process).error();
  {
    MutexLock lock(process_mutex_);
    process_ = std::move(*process);
  }
  link_ = std::move(*link);
  if (has_ended_) KillProcess();  // End has not seen it
  return {};
}

Result<void> Preloader::AwaitImports() {
  auto text = link_.Receive(After(kLongImport), interrupt_.get());
  if (!text && text.error().code == ErrorCode::kTimeout) {
    LogWarn("--preload: importing " + options_.modules + " takes more than 20 s");
    text = link_.Receive(TimePoint::max(), interrupt_.get());
  }
  if (!text) {
    const bool has_died = text.error().code == ErrorCode::kPeerLost;
    if (has_died) return Error{text.error().code, "Python has ended during the import"};
    return std::move(text).error();
  }
  auto result = PreloadResult::Parse(*text);
  if (!result) return std::move(result).error();
  for (const std::string& note : result->notes) LogWarn("--preload: cannot import " + note);
  is_given_up_ = !result->unsafe.empty();
  if (is_given_up_) return Error{ErrorCode::kSystem, result->unsafe};
  has_imported_ = true;
  is_to_check_ = false;
  return {};
}

// Ends the process if a file of a module has changed since the import.
Result<void> Preloader::CheckFiles() {
  if (auto sent = link_.Send(kCheckRequest); !sent) return sent;
  auto text = link_.Receive(After(kAnswerTimeout));
  if (!text) return std::move(text).error();
  auto changed = ParseChangedFile(*text);
  if (!changed) return std::move(changed).error();
  if (changed->empty()) return {};
  LogInfo("--preload: importing again, because " + *changed + " has changed");
  EndProcess();
  return {};
}

Result<SpawnedProcess> Preloader::Fork(const SpawnSpec& spec) {
  if (spec.before) spec.before();
  auto order = CreateMemoryFile("rankrun-order");
  if (!order) return std::move(order).error();
  auto written = TryWriteAll(order->get(), EncodeForkOrder(spec, options_.python_options));
  if (!written) return std::move(written).error();
  std::vector<int> descriptors{order->get(), spec.stdin_fd, spec.stdout_fd, spec.stderr_fd};
  if (spec.status_page_fd != Fd::kNone) descriptors.push_back(spec.status_page_fd);
  if (auto sent = link_.Send(kForkRequest, descriptors); !sent) return std::move(sent).error();
  order->Reset();
  auto text = link_.Receive(After(kAnswerTimeout));
  if (!text) return std::move(text).error();
  auto pid = ParseForkedPid(*text, spec);
  if (!pid) return std::move(pid).error();
  // Our child, which nothing else reaps while its start is under way.
  auto handle = ProcessHandle::Open(*pid);
  if (handle) return SpawnedProcess{.pid = *pid, .handle = std::move(*handle)};
  kill(*pid, SIGKILL);  // reaped like any orphan
  return std::move(handle).error().In("start " + spec.file);
}

void Preloader::BeginAttempt() {
  uint64_t count = 0;
  [[maybe_unused]] ssize_t drained = read(interrupt_.get(), &count, sizeof count);
  is_cancelled_ = false;
  is_to_check_ = true;
}

void Preloader::CancelStarts() {
  is_cancelled_ = true;
  eventfd_write(interrupt_.get(), 1);
}

void Preloader::End() {
  has_ended_ = true;
  CancelStarts();
  KillProcess();
}

std::set<pid_t> Preloader::Processes() const {
  MutexLock lock(process_mutex_);
  if (!process_ || process_->handle.HasEnded()) return {};
  return {process_->pid};
}

void Preloader::EndProcess() {
  link_ = {};
  has_imported_ = false;
  KillProcess();
}

void Preloader::KillProcess() {
  MutexLock lock(process_mutex_);
  if (process_) process_->handle.Send(SIGKILL);
}

}  // namespace rankrun::agent
