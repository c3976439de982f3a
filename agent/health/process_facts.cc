#include "agent/health/process_facts.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "agent/process/descendants.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxPathBytes = 300;

struct KnownCall {
  long number;
  const char* name;
  CallKind kind;
  bool has_descriptor;  // as the first argument
};

constexpr KnownCall kCalls[] = {
    {SYS_read, "read", CallKind::kFile, true},
    {SYS_pread64, "pread64", CallKind::kFile, true},
    {SYS_readv, "readv", CallKind::kFile, true},
    {SYS_write, "write", CallKind::kFile, true},
    {SYS_pwrite64, "pwrite64", CallKind::kFile, true},
    {SYS_writev, "writev", CallKind::kFile, true},
    {SYS_fsync, "fsync", CallKind::kFile, true},
    {SYS_fdatasync, "fdatasync", CallKind::kFile, true},
    {SYS_ftruncate, "ftruncate", CallKind::kFile, true},
    {SYS_getdents64, "getdents64", CallKind::kFile, true},
    {SYS_ioctl, "ioctl", CallKind::kFile, true},
    {SYS_flock, "flock", CallKind::kFile, true},
    {SYS_fcntl, "fcntl", CallKind::kFile, true},
    {SYS_close, "close", CallKind::kFile, true},
    {SYS_openat, "openat", CallKind::kFile, false},
    {SYS_newfstatat, "newfstatat", CallKind::kFile, false},
    {SYS_statx, "statx", CallKind::kFile, false},
    {SYS_nanosleep, "nanosleep", CallKind::kSleep, false},
    {SYS_clock_nanosleep, "clock_nanosleep", CallKind::kSleep, false},
    {SYS_futex, "futex", CallKind::kLock, false},
    {SYS_ppoll, "ppoll", CallKind::kPoll, false},
    {SYS_pselect6, "pselect6", CallKind::kPoll, false},
    {SYS_epoll_pwait, "epoll_pwait", CallKind::kPoll, false},
    {SYS_recvfrom, "recvfrom", CallKind::kPeer, true},
    {SYS_recvmsg, "recvmsg", CallKind::kPeer, true},
    {SYS_sendto, "sendto", CallKind::kPeer, true},
    {SYS_sendmsg, "sendmsg", CallKind::kPeer, true},
    {SYS_accept, "accept", CallKind::kPeer, true},
    {SYS_accept4, "accept4", CallKind::kPeer, true},
    {SYS_connect, "connect", CallKind::kPeer, true},
    {SYS_wait4, "wait4", CallKind::kChild, false},
    {SYS_waitid, "waitid", CallKind::kChild, false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", CallKind::kOther, false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", CallKind::kOther, false},
#ifdef SYS_open
    {SYS_open, "open", CallKind::kFile, false},
    {SYS_stat, "stat", CallKind::kFile, false},
    {SYS_poll, "poll", CallKind::kPoll, false},
    {SYS_select, "select", CallKind::kPoll, false},
    {SYS_epoll_wait, "epoll_wait", CallKind::kPoll, false},
    {SYS_pause, "pause", CallKind::kOther, false},
#endif
};

// A poll of no descriptor is how some programs sleep.
bool SleepsByPoll(const std::string& name, unsigned long first, unsigned long second) {
  if (name == "select" || name == "pselect6") return first == 0;
  return (name == "poll" || name == "ppoll") && second == 0;
}

// The link names the file without touching it.
std::string FileBehind(pid_t pid, int descriptor) {
  if (descriptor < 0) return "";
  std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  std::array<char, 4096> path;
  ssize_t size = readlink(link.c_str(), path.data(), path.size());
  if (size <= 0) return "";
  return OneLine(std::string_view(path.data(), static_cast<size_t>(size)), kMaxPathBytes);
}

std::string NameOfProcess(pid_t pid) {
  std::string name = ReadOfProcess(pid, "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return OneLine(name, 64);
}

}  // namespace

WaitingCall ParseCall(const std::string& line) {
  std::istringstream words(line);
  long number = -1;
  if (!(words >> number) || number < 0) return {};
  std::array<unsigned long, 2> arguments{};
  for (unsigned long& argument : arguments) {
    std::string word;
    words >> word;
    argument = std::strtoul(word.c_str(), nullptr, 16);
  }
  const auto* known = std::ranges::find(kCalls, number, &KnownCall::number);
  if (known == std::end(kCalls)) {
    return {.kind = CallKind::kOther, .name = "system call " + std::to_string(number)};
  }
  WaitingCall call{.kind = known->kind, .name = known->name};
  if (known->has_descriptor) call.descriptor = static_cast<int>(arguments[0]);
  if (SleepsByPoll(call.name, arguments[0], arguments[1])) call.kind = CallKind::kSleep;
  return call;
}

uint64_t NumberIn(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

Duration CpuTimeOf(pid_t pid) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

ProcessFacts ReadProcessFacts(pid_t pid) {
  ProcessFacts facts{.state = StateOf(pid)};
  if (facts.state == '\0') return facts;
  facts.wait_channel = OneLine(ReadOfProcess(pid, "wchan"), 64);
  if (facts.wait_channel == "0") facts.wait_channel.clear();
  WaitingCall call = ParseCall(ReadOfProcess(pid, "syscall"));
  facts.call = call.kind;
  facts.call_name = call.name;
  facts.file = FileBehind(pid, call.descriptor);
  if (facts.call == CallKind::kFile && facts.file.starts_with("socket:")) {
    facts.call = CallKind::kPeer;
  }
  std::string status = ReadOfProcess(pid, "status");
  facts.tracer = static_cast<pid_t>(NumberIn(status, "TracerPid"));
  if (facts.tracer != 0) facts.tracer_name = NameOfProcess(facts.tracer);
  facts.resident_bytes = NumberIn(status, "VmRSS") * 1024;
  std::string io = ReadOfProcess(pid, "io");
  facts.io_bytes = NumberIn(io, "rchar") + NumberIn(io, "wchar");
  return facts;
}

}  // namespace rankrun::agent
