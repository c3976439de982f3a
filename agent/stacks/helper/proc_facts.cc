#include "agent/stacks/helper/proc_facts.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "agent/stacks/helper/remote_memory.h"

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxKernelFrames = 32;

// The argument of a system call that says which file it is about.
enum class FileArgument { kNone, kDescriptor, kPath, kSecondIsPath };
using enum FileArgument;

// System calls in which a thread may wait.
struct CallName {
  long number;
  const char* name;
  FileArgument file;
};
constexpr CallName kCalls[] = {
#ifdef SYS_poll
    {SYS_poll, "poll", kNone},
    {SYS_select, "select", kNone},
    {SYS_epoll_wait, "epoll_wait", kNone},
    {SYS_open, "open", kPath},
    {SYS_pause, "pause", kNone},
    {SYS_stat, "stat", kPath},
    {SYS_access, "access", kPath},
#endif
    {SYS_read, "read", kDescriptor},
    {SYS_write, "write", kDescriptor},
    {SYS_readv, "readv", kDescriptor},
    {SYS_writev, "writev", kDescriptor},
    {SYS_pread64, "pread", kDescriptor},
    {SYS_pwrite64, "pwrite", kDescriptor},
    {SYS_recvfrom, "recvfrom", kDescriptor},
    {SYS_recvmsg, "recvmsg", kDescriptor},
    {SYS_sendto, "sendto", kDescriptor},
    {SYS_sendmsg, "sendmsg", kDescriptor},
    {SYS_accept, "accept", kDescriptor},
    {SYS_accept4, "accept", kDescriptor},
    {SYS_connect, "connect", kDescriptor},
    {SYS_flock, "flock", kDescriptor},
    {SYS_fcntl, "fcntl", kDescriptor},
    {SYS_fsync, "fsync", kDescriptor},
    {SYS_fdatasync, "fdatasync", kDescriptor},
    {SYS_ftruncate, "ftruncate", kDescriptor},
    {SYS_fallocate, "fallocate", kDescriptor},
    {SYS_close, "close", kDescriptor},
    {SYS_ioctl, "ioctl", kDescriptor},
    {SYS_getdents64, "readdir", kDescriptor},
    {SYS_openat, "openat", kSecondIsPath},
    {SYS_newfstatat, "stat", kSecondIsPath},
    {SYS_statx, "stat", kSecondIsPath},
    {SYS_statfs, "statfs", kPath},
    {SYS_unlinkat, "unlink", kSecondIsPath},
    {SYS_futex, "futex", kNone},
    {SYS_nanosleep, "nanosleep", kNone},
    {SYS_clock_nanosleep, "clock_nanosleep", kNone},
    {SYS_ppoll, "ppoll", kNone},
    {SYS_pselect6, "pselect", kNone},
    {SYS_epoll_pwait, "epoll_wait", kNone},
    {SYS_wait4, "wait4", kNone},
    {SYS_waitid, "waitid", kNone},
    {SYS_rt_sigtimedwait, "sigtimedwait", kNone},
    {SYS_rt_sigsuspend, "sigsuspend", kNone},
    {SYS_semtimedop, "semtimedop", kNone},
    {SYS_msgrcv, "msgrcv", kNone},
};

// Reads a file of /proc, 16 KiB at most; empty if it cannot be read.
std::string ReadProc(const std::string& path) {
  constexpr size_t kMaxBytes = 16 * 1024;
  std::ifstream file(path);
  std::string text(kMaxBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Returns the value of "TracerPid:\t0" in /proc/<pid>/status.
int StatusNumber(const std::string& status, std::string_view field) {
  const size_t at = status.find(field);
  return at == std::string::npos ? 0 : std::atoi(status.c_str() + at + field.size());
}

std::string FileOf(pid_t pid, int descriptor) {
  std::error_code error;
  const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  return fs::read_symlink(link, error).string().substr(0, kMaxStackText);
}

// Returns a path in the memory of a process.
std::string PathAt(pid_t pid, uint64_t address) {
  std::string path(kMaxStackText, '\0');
  path.resize(ProcessMemory(pid).ReadSome(address, path));
  return path.substr(0, path.find('\0'));
}

// Returns the functions in /proc/<pid>/task/<tid>/stack: "[<0>] pipe_read+0x1a/0x3b0".
std::vector<std::string> KernelFrames(const std::string& text) {
  std::vector<std::string> frames;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && frames.size() < kMaxKernelFrames;) {
    const size_t begin = line.find("] ");
    if (begin == std::string::npos) continue;
    frames.push_back(line.substr(begin + 2, line.find('+') - begin - 2));
  }
  return frames;
}

ThreadStack ReadThread(pid_t pid, pid_t tid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/";
  const ProcStat stat = ParseStat(ReadProc(folder + "stat"));
  ThreadStack thread{.tid = tid, .name = stat.name, .state = stat.state};
  thread.wait_channel = ReadProc(folder + "wchan").substr(0, kMaxStackText);
  if (thread.wait_channel == "0") thread.wait_channel.clear();
  const SystemCall call = ParseSystemCall(ReadProc(folder + "syscall"));
  thread.system_call = call.name;
  if (call.descriptor >= 0) thread.system_call_file = FileOf(pid, call.descriptor);
  if (call.path != 0) thread.system_call_file = PathAt(pid, call.path);
  thread.kernel = KernelFrames(ReadProc(folder + "stack"));
  return thread;
}

}  // namespace

ProcStat ParseStat(std::string_view line) {
  const size_t begin = line.find('(');
  const size_t end = line.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  ProcStat stat{.name = std::string(line.substr(begin + 1, end - begin - 1))};
  if (end + 2 < line.size()) stat.state = line[end + 2];
  return stat;
}

SystemCall ParseSystemCall(std::string_view line) {
  std::istringstream words{std::string(line)};
  long number = -1;
  uint64_t arguments[2] = {};
  if (!(words >> number) || number < 0) return {};  // "running"
  auto call = std::ranges::find(kCalls, number, &CallName::number);
  if (call == std::end(kCalls)) return {};
  words >> std::hex >> arguments[0] >> arguments[1];
  SystemCall found{.name = call->name};
  if (!words) return found;
  if (call->file == kDescriptor) found.descriptor = static_cast<int>(arguments[0]);
  if (call->file == kPath) found.path = arguments[0];
  if (call->file == kSecondIsPath) found.path = arguments[1];
  return found;
}

char StateOfThread(pid_t pid, pid_t tid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
  return ParseStat(ReadProc(folder + "/stat")).state;
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/task", error);
  for (fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    threads.push_back(std::atoi(entry->path().filename().c_str()));
  }
  std::ranges::sort(threads, {}, [pid](pid_t tid) { return std::pair(tid != pid, tid); });
  return threads;
}

ProcessStacks ReadProcFacts(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/";
  ProcessStacks stacks{.pid = pid};
  const std::string line = ReadProc(folder + "stat");
  if (line.empty()) {
    stacks.note = "there is no such process";
    return stacks;
  }
  const ProcStat stat = ParseStat(line);
  stacks.name = stat.name;
  stacks.state = stat.state;
  for (pid_t tid : ThreadsOf(pid)) {
    if (stacks.threads.size() == kMaxStackThreads) break;
    stacks.threads.push_back(ReadThread(pid, tid));
  }
  // The main thread may have ended before the others.
  const bool has_ended = std::ranges::all_of(stacks.threads, [](const ThreadStack& thread) {
    return thread.state == 'Z' || thread.state == 'X';
  });
  if (has_ended) stacks.note = "it has ended";
  return stacks;
}

std::optional<OtherTracer> TracerOf(pid_t tid) {
  const int tracer =
      StatusNumber(ReadProc("/proc/" + std::to_string(tid) + "/status"), "TracerPid:");
  if (tracer == 0) return std::nullopt;
  return OtherTracer{tracer, ReadProc("/proc/" + std::to_string(tracer) + "/comm")};
}

std::string TracerNote(const OtherTracer& tracer) {
  return "pid " + std::to_string(tracer.pid) + " (" + tracer.name + ") traces it already";
}

std::string PermissionNote(std::string_view yama_scope) {
  std::string note = "no permission to read its stack; to allow it, ";
  if (yama_scope.empty() || yama_scope == "0") {
    return note + "run as the same user, or with the capability SYS_PTRACE";
  }
  return note + "set kernel.yama.ptrace_scope (" + std::string(yama_scope) +
         ") to 0, or add the capability SYS_PTRACE";
}

std::string PermissionNote() {
  return PermissionNote(ReadProc("/proc/sys/kernel/yama/ptrace_scope"));
}

}  // namespace rankrun::agent
