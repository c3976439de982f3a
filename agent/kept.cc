#include "agent/kept.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "agent/descendants.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// Nothing: there is no environment to be read.
std::optional<bool> IsKept(pid_t pid) {
  using std::literals::string_view_literals::operator""sv;
  std::string environment = '\0' + ReadOfProcess(pid, "environ");
  if (environment.size() == 1) return std::nullopt;
  return environment.find("\0RANKRUN_KEEP=1\0"sv) != std::string::npos;
}

// Reads numbers until the end of the pipe or of our patience.
std::set<pid_t> Hear(int pipe_end, milliseconds patience) {
  std::set<pid_t> heard;
  TimePoint end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return heard;
    pollfd wait{pipe_end, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    pid_t pid = 0;
    ssize_t count = read(pipe_end, &pid, sizeof pid);
    if (count != sizeof pid && !(count < 0 && errno == EINTR)) return heard;
    if (count == sizeof pid) heard.insert(pid);
  }
}

// In the helper. What it may not touch any more are the files of its parent.
// Who is amid an exec has no environment for a moment, and is looked at again.
[[noreturn]] void Tell(int pipe_end, std::vector<pid_t> pids) {
  constexpr milliseconds kPatience{200};  // in vain for what we may not look into
  TimePoint end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::vector<pid_t> amid_exec;
    for (pid_t pid : pids) {
      auto is_kept = IsKept(pid);
      if (!is_kept && IsAmidExec(pid)) amid_exec.push_back(pid);
      if (!is_kept.value_or(false)) continue;
      WriteAll(pipe_end, std::string_view(reinterpret_cast<const char*>(&pid), sizeof pid));
    }
    if (amid_exec.empty() || std::chrono::steady_clock::now() >= end) _exit(0);
    pids = std::move(amid_exec);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::set<pid_t> KeptAmong(const std::vector<pid_t>& pids, milliseconds patience) {
  int ends[2];
  if (pids.empty() || pipe2(ends, O_CLOEXEC) != 0) return {};
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  pid_t helper = fork();
  if (helper < 0) return {};
  if (helper == 0) Tell(write_end.get(), pids);
  write_end.Reset();
  std::set<pid_t> kept = Hear(read_end.get(), patience);
  kill(helper, SIGKILL);
  while (waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
  }
  return kept;
}

}  // namespace

KeepMarks KeepMarksOf(const std::vector<pid_t>& pids) {
  KeepMarks marks;
  for (pid_t pid : pids) {
    if (auto is_kept = IsKept(pid)) (*is_kept ? marks.kept : marks.not_kept).insert(pid);
  }
  return marks;
}

std::set<pid_t> FindKept(const std::set<pid_t>& spared, milliseconds patience) {
  std::set<pid_t> seen = spared;
  std::set<pid_t> kept;
  // Twice: a first look at /proc may miss one that is just being handed over.
  for (int look = 0; look < 2; ++look) {
    std::vector<pid_t> fresh;
    for (pid_t pid : Descendants(spared)) {
      if (seen.insert(pid).second) fresh.push_back(pid);
    }
    kept.merge(KeptAmong(fresh, patience));
  }
  return kept;
}

std::set<pid_t> TopmostOf(const std::set<pid_t>& kept) {
  std::set<pid_t> topmost;
  for (pid_t pid : kept) {
    pid_t above = ParentOf(pid);
    while (above > 1 && !kept.contains(above)) above = ParentOf(above);
    if (!kept.contains(above)) topmost.insert(pid);
  }
  return topmost;
}

std::string DescribeKept(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  if (!name.empty()) name.pop_back();  // the newline
  return "left running because of RANKRUN_KEEP: pid " + std::to_string(pid) + " (" + name + ")";
}

}  // namespace rankrun::agent
