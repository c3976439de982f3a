#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include <rankrun/launch.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory_file.h"
#include "base/mutex.h"
#include "base/process/process_handle.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/launch/launch_command.h"
#include "comm/launch/launch_result.h"

extern char** environ;

namespace rankrun {
namespace {

using std::chrono::milliseconds;

constexpr int kMinCopy = 10;  // above all descriptors that the child uses

// Duplicates a descriptor for the child to a number that the child does not
// use, so that no dup2 in the child overwrites it.
Result<Fd> Copy(int fd, const std::string& name) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, kMinCopy));
  if (!copy && errno == EBADF) {
    return Error{ErrorCode::kInvalid,
                 "LaunchSpec::" + name + " is " + std::to_string(fd) + ": not an open descriptor"};
  }
  if (!copy) return SystemError("LaunchSpec::" + name, errno);
  return copy;
}

// Actions of posix_spawn between fork and exec.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    // These keep their disposition: nohup ignores SIGHUP for its child.
    for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGSTOP}) {
      sigdelset(&signals, number);
    }
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // Makes `fd` of this process descriptor `number` of the child.
  Result<void> Give(int fd, int number, const std::string& name) {
    bool closed_by_default = fd == number && fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    if (closed_by_default) return {};
    auto copy = Copy(fd, name);
    if (!copy) return std::move(copy).error();
    posix_spawn_file_actions_adddup2(&actions_, copy->get(), number);
    copies_.push_back(std::move(*copy));
    return {};
  }

  Result<void> EnterDirectory(const std::string& directory) {
    struct stat status;
    if (directory.empty()) return {};
    if (stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      return Error{ErrorCode::kInvalid, "LaunchSpec::directory is " + directory + ": no folder"};
    }
    posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
    return {};
  }

  Result<pid_t> Run(const std::vector<std::string>& words, const std::vector<std::string>& names) {
    posix_spawn_file_actions_addclosefrom_np(&actions_, comm::kLifelineFd + 1);
    auto pointers = [](const std::vector<std::string>& texts) {
      std::vector<char*> list;
      for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
      list.push_back(nullptr);
      return list;
    };
    pid_t pid;
    int error = posix_spawn(&pid, words[0].c_str(), &actions_, &attributes_, pointers(words).data(),
                            pointers(names).data());
    if (error != 0) return SystemError("start " + words[0], error);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<Fd> copies_;
};

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

std::string ReadWhole(const Fd& fd) {
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return "";
  std::string text(static_cast<size_t>(status.st_size), '\0');
  ssize_t count = pread(fd.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

bool AwaitEnd(const ProcessHandle& process, milliseconds timeout) {
  return process.AwaitEnd(std::chrono::steady_clock::now() + comm::Bounded(timeout));
}

}  // namespace

struct LaunchHandle::State {
  pid_t pid = 0;
  ProcessHandle process;
  Fd events;    // memory file with the events; read after rankrun has ended
  Fd lifeline;  // rankrun ends the job when it is closed
  milliseconds longest_end{};
  Mutex mutex;
  std::optional<Result<LaunchResult>> result GUARDED_BY(mutex);

  void Signal(int number) const { process.Send(number); }

  // Sets the result after rankrun has ended. If other code of this program has
  // reaped rankrun, its exit is unknown, and only its events describe the end.
  void Conclude() REQUIRES(mutex) {
    AwaitEnd(process, std::chrono::hours(24));
    std::optional<ProcessExit> exit = process.Reap();
    std::string text = ReadWhole(events);
    result = comm::Conclude(comm::ReadStory(text), exit);
    if (*result) (**result).events = std::move(text);
  }
};

LaunchHandle::LaunchHandle(std::unique_ptr<State> state) : state_(std::move(state)) {}
LaunchHandle::LaunchHandle(LaunchHandle&& other) noexcept = default;

LaunchHandle& LaunchHandle::operator=(LaunchHandle&& other) noexcept {
  LaunchHandle ends(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

LaunchHandle::~LaunchHandle() {
  if (state_ == nullptr || state_->result) return;
  state_->lifeline.Reset();
  Stop();
  state_->Signal(SIGCONT);  // a stopped rankrun would react to neither
  if (!AwaitEnd(state_->process, state_->longest_end)) state_->Signal(SIGKILL);
  state_->Conclude();
}

pid_t LaunchHandle::pid() const { return state_->pid; }

std::optional<LaunchResult> LaunchHandle::WaitFor(milliseconds timeout) {
  if (!AwaitEnd(state_->process, timeout)) return std::nullopt;
  MutexLock lock(state_->mutex);
  if (!state_->result) state_->Conclude();
  return comm::Unwrap(*state_->result);
}

LaunchResult LaunchHandle::Wait() {
  constexpr std::chrono::hours kVeryLong{24};
  for (;;) {
    if (auto result = WaitFor(kVeryLong)) return *std::move(result);
  }
}

void LaunchHandle::Stop() { state_->Signal(SIGTERM); }

LaunchHandle StartLaunch(const LaunchSpec& spec) {
  std::string executable = comm::Unwrap(comm::FindExecutable(spec));
  std::vector<std::string> words = comm::Unwrap(comm::CommandFor(spec, executable));
  std::vector<std::string> names = comm::Unwrap(comm::EnvironmentFor(spec, OwnEnvironment()));
  auto state = std::make_unique<LaunchHandle::State>();
  state->longest_end = comm::LongestEnd(spec);
  state->events = comm::Unwrap(CreateMemoryFile("rankrun-events"));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) comm::Throw(SystemError("launch: create a pipe", errno));
  Fd far_end(ends[0]);
  state->lifeline.Reset(ends[1]);
  SpawnPlan plan;
  comm::Unwrap(plan.EnterDirectory(spec.directory));
  comm::Unwrap(plan.Give(spec.stdin_fd, 0, "stdin_fd"));
  comm::Unwrap(plan.Give(spec.stdout_fd, 1, "stdout_fd"));
  comm::Unwrap(plan.Give(spec.stderr_fd, 2, "stderr_fd"));
  comm::Unwrap(plan.Give(state->events.get(), comm::kEventsFd, "events"));
  comm::Unwrap(plan.Give(far_end.get(), comm::kLifelineFd, "lifeline"));
  state->pid = comm::Unwrap(plan.Run(words, names));
  auto process = ProcessHandle::Open(state->pid);
  if (!process) {
    state->lifeline.Reset();  // ends the job
    while (waitpid(state->pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    comm::Throw(std::move(process).error().In("launch: watch rankrun"));
  }
  state->process = std::move(*process);
  return LaunchHandle(std::move(state));
}

LaunchResult Launch(const LaunchSpec& spec) { return StartLaunch(spec).Wait(); }

LaunchSpec OwnProgram(std::vector<std::string> arguments) {
  std::string path(PATH_MAX, '\0');
  ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length < 0) comm::Throw(SystemError("read /proc/self/exe", errno));
  path.resize(static_cast<size_t>(length));
  if (access(path.c_str(), X_OK) != 0) {
    comm::Throw({ErrorCode::kInvalid, "this program's file " + path + " is gone"});
  }
  LaunchSpec spec;
  spec.program = {path};
  spec.program.insert(spec.program.end(), arguments.begin(), arguments.end());
  spec.flags = {"--no-python"};
  return spec;
}

}  // namespace rankrun
