#include "agent/output/folder_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "base/fnv.h"
#include "base/host_name.h"
#include "base/process/process_handle.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

constexpr char kFormat[] = "rankrun-2";

seconds SinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return seconds(now.tv_sec);
}

// Returns 0 if it is not known.
uint64_t ThisPidSpace() {
  struct stat pids {};
  if (stat("/proc/self/ns/pid", &pids) != 0) return 0;
  Fnv hash(pids.st_ino);
  hash.Add(HostName());
  hash.Add(BootId());  // hosts that share a folder may have one name
  constexpr uint64_t kBits = 48;
  return hash.hash() >> (64 - kBits);
}

// Also true for a process that its parent has not reaped.
bool IsGone(pid_t pid, seconds made) {
  static const auto ticks_per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  auto process = ProcessHandle::Open(pid);
  if (!process) return process.error().code == ErrorCode::kNotFound;
  const uint64_t ticks = StartTimeOfProcess(pid);
  const bool is_younger = seconds(ticks / ticks_per_second) > made;
  return is_younger || process->HasEnded();
}

}  // namespace

std::string EncodeMark(const FolderMark& mark) {
  char text[128];
  const int size =
      mark.ended ? std::snprintf(text, sizeof text, "%s ended %lld.", kFormat,
                                 static_cast<long long>(mark.ended->time_since_epoch().count()))
                 : std::snprintf(text, sizeof text, "%s running %" PRIx64 " %lld %d %d.", kFormat,
                                 mark.pid_space, static_cast<long long>(mark.made.count()),
                                 mark.guardian, mark.agent);
  return {text, static_cast<size_t>(size)};
}

std::optional<FolderMark> DecodeMark(const std::string& text) {
  char format[16] = "";
  long long time = 0;
  FolderMark mark;
  if (std::sscanf(text.c_str(), "%15s ended %lld", format, &time) == 2) {
    mark.ended = std::chrono::sys_seconds(seconds(time));
  } else if (std::sscanf(text.c_str(), "%15s running %" SCNx64 " %lld %d %d", format,
                         &mark.pid_space, &time, &mark.guardian, &mark.agent) == 5) {
    mark.made = seconds(time);
  }
  return EncodeMark(mark) == text ? std::optional(mark) : std::nullopt;
}

FolderMark MarkOfThisJob() {
  return {
      .pid_space = ThisPidSpace(), .made = SinceBoot(), .guardian = getppid(), .agent = getpid()};
}

bool UsersAreGone(const FolderMark& mark) {
  if (mark.pid_space == 0 || mark.pid_space != ThisPidSpace()) return false;
  return IsGone(mark.guardian, mark.made) && IsGone(mark.agent, mark.made);
}

Result<void> WriteMark(int at, const std::string& path, const FolderMark& mark) {
  const std::string name = path + "/" + kFolderMark;
  const std::string text = EncodeMark(mark);
  if (symlinkat(text.c_str(), at, name.c_str()) == 0) return {};
  // Renamed, so that the folder has a mark at any time.
  const std::string next = name + "." + std::to_string(getpid());
  const bool is_replaced = errno == EEXIST && symlinkat(text.c_str(), at, next.c_str()) == 0 &&
                           renameat(at, next.c_str(), at, name.c_str()) == 0;
  return is_replaced ? Result<void>() : SystemError("mark the folder " + path, errno);
}

}  // namespace rankrun::agent
