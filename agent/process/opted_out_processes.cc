#include "agent/process/opted_out_processes.h"

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

#include "agent/process/descendants.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

// Returns nothing if the environment cannot be read.
std::optional<bool> IsOptedOut(pid_t pid) {
  using std::literals::string_view_literals::operator""sv;
  std::string environment = '\0' + ReadOfProcess(pid, "environ");
  if (environment.size() == 1) return std::nullopt;
  return environment.find("\0RANKRUN_KEEP=1\0"sv) != std::string::npos;
}

// Reads pids until the end of the pipe or until `patience` has passed.
std::set<pid_t> CollectReports(int pipe_end, milliseconds patience) {
  std::set<pid_t> reported;
  TimePoint end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return reported;
    pollfd wait{pipe_end, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    pid_t pid = 0;
    ssize_t count = read(pipe_end, &pid, sizeof pid);
    if (count != sizeof pid && !(count < 0 && errno == EINTR)) return reported;
    if (count == sizeof pid) reported.insert(pid);
  }
}

// Runs in the helper process, which must not touch the files of its parent. Looks
// again at a process that may have been in the middle of exec, where it has no
// environment.
[[noreturn]] void ReportOptedOut(int pipe_end, std::vector<pid_t> pids) {
  constexpr milliseconds kPatience{200};  // passes in full if a process may not be inspected
  TimePoint end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::vector<pid_t> unclear;
    for (pid_t pid : pids) {
      auto is_opted_out = IsOptedOut(pid);
      if (!is_opted_out && MayHaveEnvironment(pid)) unclear.push_back(pid);
      if (!is_opted_out.value_or(false)) continue;
      WriteAll(pipe_end, std::string_view(reinterpret_cast<const char*>(&pid), sizeof pid));
    }
    if (unclear.empty() || std::chrono::steady_clock::now() >= end) _exit(0);
    pids = std::move(unclear);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

std::set<pid_t> OptedOutAmong(const std::vector<pid_t>& pids, milliseconds patience) {
  int ends[2];
  if (pids.empty() || pipe2(ends, O_CLOEXEC) != 0) return {};
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  pid_t helper = fork();
  if (helper < 0) return {};
  if (helper == 0) ReportOptedOut(write_end.get(), pids);
  write_end.Reset();
  std::set<pid_t> opted_out = CollectReports(read_end.get(), patience);
  kill(helper, SIGKILL);
  while (waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
  }
  return opted_out;
}

}  // namespace

OptOutMarks OptOutMarksOf(const std::vector<pid_t>& pids) {
  OptOutMarks marks;
  for (pid_t pid : pids) {
    auto is_opted_out = IsOptedOut(pid);
    if (is_opted_out) (*is_opted_out ? marks.opted_out : marks.not_opted_out).insert(pid);
  }
  return marks;
}

std::set<pid_t> FindOptedOut(const std::set<pid_t>& spared, milliseconds patience) {
  std::set<pid_t> seen = spared;
  std::set<pid_t> opted_out;
  // Scan twice because /proc may miss a process while it is reparented.
  for (int look = 0; look < 2; ++look) {
    std::vector<pid_t> fresh;
    for (pid_t pid : Descendants(spared)) {
      if (seen.insert(pid).second) fresh.push_back(pid);
    }
    opted_out.merge(OptedOutAmong(fresh, patience));
  }
  return opted_out;
}

std::set<pid_t> TopmostOf(const std::set<pid_t>& opted_out) {
  std::set<pid_t> topmost;
  for (pid_t pid : opted_out) {
    pid_t above = ParentOf(pid);
    while (above > 1 && !opted_out.contains(above)) above = ParentOf(above);
    if (!opted_out.contains(above)) topmost.insert(pid);
  }
  return topmost;
}

std::string DescribeOptedOut(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  if (!name.empty()) name.pop_back();  // the newline
  return "left running because of RANKRUN_KEEP: pid " + std::to_string(pid) + " (" + name + ")";
}

}  // namespace rankrun::agent
