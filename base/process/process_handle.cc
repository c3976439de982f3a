#include "base/process/process_handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/refused_call.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

// Longest time until an end is noticed without a pidfd, where no SIGCHLD announces it.
constexpr long kTickNanoseconds = 50'000'000;

Result<Fd> OpenTimer() {
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec ticks{.it_interval = {.tv_sec = 0, .tv_nsec = kTickNanoseconds},
                         .it_value = {.tv_sec = 0, .tv_nsec = 1}};
  if (!timer || timerfd_settime(timer.get(), 0, &ticks, nullptr) != 0) {
    return SystemError("create a timer", errno);
  }
  return timer;
}

// The fields of /proc/<pid>/stat that show whether a process runs. State 0: they cannot be read.
struct ProcStat {
  bool is_absent = false;  // there is no such process, or we may not see it
  char state = '\0';
  long threads = 0;
  uint64_t start_time = 0;
};

ProcStat ReadStat(pid_t pid) {
  constexpr int kState = 3;  // as proc(5) numbers the fields
  constexpr int kThreads = 20;
  constexpr int kStartTime = 22;
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024] = "";
  if (file) errno = 0;  // which an empty file leaves
  const bool is_read = file && read(file.get(), text, sizeof text - 1) > 0;
  if (!is_read) return {.is_absent = errno == ENOENT || errno == ESRCH};
  const char* at = std::strrchr(text, ')');  // the name before it may contain ')'
  ProcStat stat;
  for (int field = kState; at != nullptr && field <= kStartTime; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return {};
    if (field == kState) stat.state = at[1];
    if (field == kThreads) stat.threads = std::strtol(at + 1, nullptr, 10);
    if (field == kStartTime) stat.start_time = std::strtoull(at + 1, nullptr, 10);
  }
  return stat;
}

// Returns the errno of waitid, or 0. Sets `exit` if a child was reaped.
int ReapBy(idtype_t type, id_t id, std::optional<ProcessExit>& exit) {
  siginfo_t info{};
  int status;
  do {
    status = waitid(type, id, &info, WEXITED | WNOHANG);
  } while (status != 0 && errno == EINTR);
  if (status != 0) return errno;
  if (info.si_pid == 0) return 0;
  exit = ProcessExit{.signaled = info.si_code != CLD_EXITED, .value = info.si_status};
  return 0;
}

}  // namespace

uint64_t StartTimeOfProcess(pid_t pid) { return ReadStat(pid).start_time; }

std::optional<ProcessExit> ReapByPid(pid_t pid) {
  std::optional<ProcessExit> exit;
  ReapBy(P_PID, static_cast<id_t>(pid), exit);
  return exit;
}

Result<ProcessHandle> ProcessHandle::Open(pid_t pid) {
  const std::string what = "watch pid " + std::to_string(pid);
  const Error ended{ErrorCode::kNotFound, what + ": it has ended"};
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return ProcessHandle(pid, std::move(pidfd), /*is_timer=*/false);
  if (errno == ESRCH) return ended;
  if (!IsRefusedCall(errno)) return SystemError(what, errno);
  if (kill(pid, 0) != 0 && errno == ESRCH) return ended;
  auto timer = OpenTimer();
  if (!timer) return std::move(timer).error().In(what);
  return ProcessHandle(pid, std::move(*timer), /*is_timer=*/true);
}

bool ProcessHandle::HasEnded() const {
  if (is_timer_) {
    if (HasEndedByProc()) return true;
    // Only now, so that the timer of a process that has ended stays readable.
    uint64_t ticks;
    [[maybe_unused]] const ssize_t discarded = read(fd_.get(), &ticks, sizeof ticks);
    return false;
  }
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

bool ProcessHandle::HasEndedByProc() const {
  siginfo_t info{};
  const int waited = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (waited == 0 && info.si_pid != 0) return true;
  const ProcStat stat = ReadStat(pid_);
  if (stat.state == '\0') {
    // A child that is not reaped is there, even if /proc hides it.
    if (waited == 0) return false;
    const bool was_seen = start_time_ != 0;
    return (stat.is_absent && was_seen) || (kill(pid_, 0) != 0 && errno == ESRCH);
  }
  if (start_time_ != 0 && stat.start_time != start_time_) return true;
  // The first thread of a process may end before the others.
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

bool ProcessHandle::AwaitEnd(TimePoint deadline) const {
  while (!HasEnded()) {
    auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX)));
  }
  return true;
}

bool ProcessHandle::Send(int signal_number) const {
  if (!is_timer_ && syscall(SYS_pidfd_send_signal, fd_.get(), signal_number, nullptr, 0) == 0) {
    return true;
  }
  if (!is_timer_ && !IsRefusedCall(errno)) return false;
  if (HasEnded()) {
    errno = ESRCH;
    return false;
  }
  return kill(pid_, signal_number) == 0;
}

std::optional<ProcessExit> ProcessHandle::Reap() const {
  if (is_timer_) return ReapByPid(pid_);
  std::optional<ProcessExit> exit;
  const int failure = ReapBy(P_PIDFD, static_cast<id_t>(fd_.get()), exit);
  const bool has_no_pidfd = failure == EINVAL || IsRefusedCall(failure);  // EINVAL: Linux 5.3
  return has_no_pidfd ? ReapByPid(pid_) : exit;
}

}  // namespace rankrun
