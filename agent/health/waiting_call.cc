#include "agent/health/waiting_call.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <sstream>

namespace rankrun::agent {
namespace {

// The arguments that say which file a call is about.
enum class FileArgument : uint8_t {
  kNone,
  kDescriptor,  // the first one
  kPath,        // the first one
  kPathAt,      // a directory's descriptor, and the path
};
using enum FileArgument;

struct KnownCall {
  long number;
  const char* name;
  CallKind kind;
  FileArgument file;
};

constexpr KnownCall kCalls[] = {
    {SYS_read, "read", CallKind::kFile, kDescriptor},
    {SYS_pread64, "pread64", CallKind::kFile, kDescriptor},
    {SYS_readv, "readv", CallKind::kFile, kDescriptor},
    {SYS_write, "write", CallKind::kFile, kDescriptor},
    {SYS_pwrite64, "pwrite64", CallKind::kFile, kDescriptor},
    {SYS_writev, "writev", CallKind::kFile, kDescriptor},
    {SYS_fsync, "fsync", CallKind::kFile, kDescriptor},
    {SYS_fdatasync, "fdatasync", CallKind::kFile, kDescriptor},
    {SYS_ftruncate, "ftruncate", CallKind::kFile, kDescriptor},
    {SYS_fallocate, "fallocate", CallKind::kFile, kDescriptor},
    {SYS_getdents64, "getdents64", CallKind::kFile, kDescriptor},
    {SYS_ioctl, "ioctl", CallKind::kFile, kDescriptor},
    {SYS_flock, "flock", CallKind::kFile, kDescriptor},
    {SYS_fcntl, "fcntl", CallKind::kFile, kDescriptor},
    {SYS_fstat, "fstat", CallKind::kFile, kDescriptor},
    {SYS_close, "close", CallKind::kFile, kDescriptor},
    {SYS_openat, "openat", CallKind::kFile, kPathAt},
    {SYS_newfstatat, "newfstatat", CallKind::kFile, kPathAt},
    {SYS_statx, "statx", CallKind::kFile, kPathAt},
    {SYS_faccessat, "faccessat", CallKind::kFile, kPathAt},
    {SYS_mkdirat, "mkdirat", CallKind::kFile, kPathAt},
    {SYS_readlinkat, "readlinkat", CallKind::kFile, kPathAt},
    {SYS_renameat, "renameat", CallKind::kFile, kPathAt},
    {SYS_renameat2, "renameat2", CallKind::kFile, kPathAt},
    {SYS_unlinkat, "unlinkat", CallKind::kFile, kPathAt},
    {SYS_chdir, "chdir", CallKind::kFile, kPath},
    {SYS_execve, "execve", CallKind::kFile, kPath},
    {SYS_statfs, "statfs", CallKind::kFile, kPath},
    {SYS_nanosleep, "nanosleep", CallKind::kSleep, kNone},
    {SYS_clock_nanosleep, "clock_nanosleep", CallKind::kSleep, kNone},
    {SYS_futex, "futex", CallKind::kLock, kNone},
    {SYS_ppoll, "ppoll", CallKind::kPoll, kNone},
    {SYS_pselect6, "pselect6", CallKind::kPoll, kNone},
    {SYS_epoll_pwait, "epoll_pwait", CallKind::kPoll, kNone},
    {SYS_recvfrom, "recvfrom", CallKind::kPeer, kDescriptor},
    {SYS_recvmsg, "recvmsg", CallKind::kPeer, kDescriptor},
    {SYS_sendto, "sendto", CallKind::kPeer, kDescriptor},
    {SYS_sendmsg, "sendmsg", CallKind::kPeer, kDescriptor},
    {SYS_accept, "accept", CallKind::kPeer, kDescriptor},
    {SYS_accept4, "accept4", CallKind::kPeer, kDescriptor},
    {SYS_connect, "connect", CallKind::kPeer, kDescriptor},
    {SYS_wait4, "wait4", CallKind::kChild, kNone},
    {SYS_waitid, "waitid", CallKind::kChild, kNone},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", CallKind::kOther, kNone},
    {SYS_rt_sigsuspend, "rt_sigsuspend", CallKind::kOther, kNone},
#ifdef SYS_open
    {SYS_open, "open", CallKind::kFile, kPath},
    {SYS_stat, "stat", CallKind::kFile, kPath},
    {SYS_lstat, "lstat", CallKind::kFile, kPath},
    {SYS_access, "access", CallKind::kFile, kPath},
    {SYS_mkdir, "mkdir", CallKind::kFile, kPath},
    {SYS_readlink, "readlink", CallKind::kFile, kPath},
    {SYS_rename, "rename", CallKind::kFile, kPath},
    {SYS_unlink, "unlink", CallKind::kFile, kPath},
    {SYS_poll, "poll", CallKind::kPoll, kNone},
    {SYS_select, "select", CallKind::kPoll, kNone},
    {SYS_epoll_wait, "epoll_wait", CallKind::kPoll, kNone},
    {SYS_pause, "pause", CallKind::kOther, kNone},
#endif
};

using Arguments = std::array<uint64_t, 3>;

// A poll of no descriptor is how some programs sleep.
bool SleepsByPoll(const std::string& name, const Arguments& arguments) {
  if (name == "select" || name == "pselect6") return arguments[0] == 0;
  return (name == "poll" || name == "ppoll") && arguments[1] == 0;
}

// Returns the thread that pthread_join waits for; 0: none. The kernel itself ends such a wait,
// which is the only one of the C library that is not private to the process.
pid_t JoinedThread(const Arguments& arguments) {
  const uint64_t operation = arguments[1] & static_cast<uint64_t>(FUTEX_CMD_MASK);
  const bool waits = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
  const bool is_private = (arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
  return waits && !is_private ? static_cast<pid_t>(arguments[2]) : 0;
}

void AddDetails(const Arguments& arguments, WaitingCall& call) {
  if (call.name == "poll" || call.name == "ppoll") {
    call.polled = arguments[0];
    call.polled_count = arguments[1];
  } else if (call.name.starts_with("epoll_")) {
    call.epoll = static_cast<int>(arguments[0]);
  } else if (call.name == "futex") {
    call.joined = JoinedThread(arguments);
  }
}

bool WaitsForLock(const std::string& name, const Arguments& arguments) {
  if (name == "flock") return true;
  const bool is_setlkw = arguments[1] == F_SETLKW || arguments[1] == F_OFD_SETLKW;
  return name == "fcntl" && is_setlkw;
}

// The arguments are still those of the call. Only a sleep has small numbers: a clock and flags.
WaitingCall Continued(const Arguments& arguments, const std::string& wait_channel) {
  constexpr uint64_t kMaxClock = 11;
  const bool is_sleep = arguments[0] <= kMaxClock && arguments[1] <= 1;
  const auto has = [&](const char* part) { return wait_channel.find(part) != std::string::npos; };
  if (is_sleep || has("nanosleep")) return {.kind = CallKind::kSleep, .name = "clock_nanosleep"};
  if (has("futex")) return {.kind = CallKind::kLock, .name = "futex"};
  if (has("poll")) return {.kind = CallKind::kPoll, .name = "poll"};
  return {.kind = CallKind::kOther, .name = "restart_syscall"};
}

}  // namespace

WaitingCall ParseCall(const std::string& line, const std::string& wait_channel) {
  std::istringstream words(line);
  long number = -1;
  if (!(words >> number) || number < 0) return {};
  Arguments arguments{};
  for (uint64_t& argument : arguments) {
    std::string word;
    words >> word;
    argument = std::strtoull(word.c_str(), nullptr, 16);
  }
  if (number == SYS_restart_syscall) {
    WaitingCall call = Continued(arguments, wait_channel);
    AddDetails(arguments, call);
    return call;
  }
  const auto* known = std::ranges::find(kCalls, number, &KnownCall::number);
  if (known == std::end(kCalls)) {
    return {.kind = CallKind::kOther, .name = "system call " + std::to_string(number)};
  }
  WaitingCall call{.kind = known->kind, .name = known->name};
  if (SleepsByPoll(call.name, arguments)) call.kind = CallKind::kSleep;
  call.waits_for_lock = WaitsForLock(call.name, arguments);
  AddDetails(arguments, call);
  if (known->file == kDescriptor) call.descriptor = static_cast<int>(arguments[0]);
  if (known->file == kPath) call.path = arguments[0];
  if (known->file == kPathAt) {
    call.directory = static_cast<int>(arguments[0]);
    call.path = arguments[1];
  }
  if (call.name == "openat") call.open_flags = arguments[2];
  if (call.name == "open") call.open_flags = arguments[1];
  return call;
}

}  // namespace rankrun::agent
