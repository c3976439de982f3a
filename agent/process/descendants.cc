#include "agent/process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "base/process/process_handle.h"
#include "base/write_all.h"

namespace rankrun::agent {

std::string ReadOfProcess(pid_t pid, const std::string& name) {
  std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while (fd && (count = read(fd.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Calls `visit` for each entry of `folder` whose name is a number.
void ForEachNumber(const std::string& folder, const std::function<void(pid_t)>& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) return;
    if (pid_t number = std::atoi(entry->d_name); number > 0) visit(number);
  }
}

// Returns the fields of /proc/<pid>/stat after the process name: "S 1 ..."
// (state, parent). The name itself may contain any character.
std::string StatAfterName(pid_t pid) {
  std::string stat = ReadOfProcess(pid, "stat");
  size_t end_of_name = stat.rfind(") ");
  return end_of_name == std::string::npos ? "" : stat.substr(end_of_name + 2);
}

// Returns one field of StatAfterName; 0 if it is missing or the process is
// gone.
uint64_t StatNumber(pid_t pid, int fields_before) {
  std::istringstream stat(StatAfterName(pid));
  std::string skipped;
  for (int i = 0; i < fields_before; ++i) stat >> skipped;
  uint64_t number = 0;
  stat >> number;
  return stat ? number : 0;
}

// Checks every process, for kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> ChildrenByScan(pid_t parent) {
  std::vector<pid_t> children;
  ForEachNumber("/proc", [&](pid_t pid) {
    if (ParentOf(pid) == parent) children.push_back(pid);
  });
  return children;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  static const bool has_lists = access("/proc/thread-self/children", F_OK) == 0;
  if (!has_lists) return ChildrenByScan(parent);
  std::vector<pid_t> children;
  std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  ForEachNumber(tasks, [&](pid_t task) {
    std::string list = ReadOfProcess(parent, "task/" + std::to_string(task) + "/children");
    const char* at = list.data();
    const char* end = at + list.size();
    for (pid_t pid = 0;; ++at) {
      auto [rest, error] = std::from_chars(at, end, pid);
      if (error != std::errc()) return;
      children.push_back(pid);
      at = rest;
      if (at == end) return;
    }
  });
  return children;
}

void CollectBelow(pid_t parent, const std::set<pid_t>& spared, std::vector<pid_t>& found) {
  for (pid_t child : ChildrenOf(parent)) {
    if (spared.contains(child)) continue;
    found.push_back(child);
    CollectBelow(child, spared, found);
  }
}

void ReapEnded() {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info.si_pid = 0;
}

}  // namespace

pid_t ParentOf(pid_t pid) {
  std::string stat = StatAfterName(pid);
  return stat.size() > 2 ? std::atoi(stat.c_str() + 2) : 0;
}

void BecomeSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> Children() { return ChildrenOf(getpid()); }

std::vector<pid_t> Descendants(const std::set<pid_t>& spared) {
  std::vector<pid_t> found;
  CollectBelow(getpid(), spared, found);
  return found;
}

pid_t ChildAbove(pid_t pid) {
  while (pid > 1) {
    pid_t parent = ParentOf(pid);
    if (parent == getpid()) return pid;
    pid = parent;
  }
  return 0;
}

char StateOf(pid_t pid) {
  std::string stat = StatAfterName(pid);
  return stat.empty() ? '\0' : stat[0];
}

bool IsTraced(std::string_view status) {
  constexpr std::string_view kLine = "TracerPid:\t";
  const size_t at = status.find(kLine);
  return at != status.npos && status.compare(at + kLine.size(), 2, "0\n") != 0;
}

bool MayHaveEnvironment(pid_t pid) {
  constexpr int kFieldsBeforeStart = 47;  // env_start and env_end; exec sets both to 0
  constexpr int kFieldsBeforeEnd = 48;
  char state = StateOf(pid);
  if (state == '\0' || state == 'Z' || state == 'X') return false;
  uint64_t end = StatNumber(pid, kFieldsBeforeEnd);
  return end == 0 || StatNumber(pid, kFieldsBeforeStart) != end;
}

std::optional<Duration> AgeOf(uint64_t start_time) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  static const auto ticks_per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  milliseconds uptime = seconds(now.tv_sec) + milliseconds(now.tv_nsec / 1'000'000);
  milliseconds started(start_time * 1000 / ticks_per_second);
  if (start_time == 0 || started > uptime) return std::nullopt;
  return uptime - started;
}

bool HasChildren() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::string DescribeState(pid_t pid) {
  const char state = StateOf(pid);
  if (state == '\0') return "";
  std::string channel = ReadOfProcess(pid, "wchan");  // "0": none
  return std::string("state ") + state + (channel.size() > 1 ? " in " + channel : "");
}

std::string DescribeProcess(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  if (!name.empty()) name.pop_back();  // the newline
  const std::string state = DescribeState(pid);
  return "pid " + std::to_string(pid) + " (" + name + ")" + (state.empty() ? "" : ", " + state);
}

// The descriptor is opened first, so that a process that takes over the pid later
// is not the one that it means.
bool SignalDescendant(pid_t pid, int signal_number) {
  auto process = ProcessHandle::Open(pid);
  if (!process && process.error().code == ErrorCode::kNotFound) return true;
  if (ChildAbove(pid) == 0) return true;  // somebody else's
  const bool sent = process ? process->Send(signal_number)
                            : kill(pid, signal_number) == 0;  // without descriptors left
  return sent || errno != EPERM;
}

int KillDescendants(const std::set<pid_t>& spared) {
  std::set<pid_t> killed;
  std::set<pid_t> forbidden;
  TimePoint started = std::chrono::steady_clock::now();
  Duration next_word = seconds(1);
  int empty_looks = 0;
  for (;;) {
    std::vector<pid_t> left = Descendants(spared);
    for (pid_t pid : left) {
      bool signaled = SignalDescendant(pid, SIGKILL);
      (signaled ? killed : forbidden).insert(pid);
    }
    ReapEnded();
    empty_looks = left.empty() ? empty_looks + 1 : 0;
    // ECHILD cannot prove that only spared processes are left. /proc may miss a
    // process while it is reparented, but not twice in a row.
    bool none_left = spared.empty() ? !HasChildren() : empty_looks >= 2;
    if (none_left) return static_cast<int>(killed.size());
    if (Duration waited = std::chrono::steady_clock::now() - started; waited > next_word) {
      for (pid_t pid : left) {
        const char* why = forbidden.contains(pid) ? ", which we may not signal\n" : "\n";
        WriteLastWords(2, "rankrun: still waiting for the end of " + DescribeProcess(pid) + why);
      }
      next_word = waited + seconds(30);
    }
    std::this_thread::sleep_for(milliseconds(1));  // gives the kernel time to tear them down
  }
}

}  // namespace rankrun::agent
