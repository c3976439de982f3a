#include "agent/output/folder_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/host_name.h"
#include "base/process/process_handle.h"

namespace rankrun::agent {
namespace {

using std::chrono::nanoseconds;

constexpr char kFormat[] = "rankrun-1";

// Returns the name of this host and the id of its start, because hosts that share a folder may
// have one name.
std::string ThisHost() {
  const std::string boot = BootId();
  return boot.empty() ? HostName() : HostName() + "/" + boot;
}

nanoseconds SinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

uint64_t ThisPidNamespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// Also true for a process that its parent has not reaped.
bool IsGone(pid_t pid, nanoseconds made) {
  static const auto ticks_per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  auto process = ProcessHandle::Open(pid);
  if (!process) return process.error().code == ErrorCode::kNotFound;
  const uint64_t ticks = StartTimeOfProcess(pid);
  const bool is_younger = std::chrono::seconds(ticks / ticks_per_second) > made;
  return is_younger || process->HasEnded();
}

}  // namespace

std::string EncodeMark(const FolderMark& mark) {
  return std::string(kFormat) + (mark.has_ended ? " ended " : " running ") +
         std::to_string(mark.pid_namespace) + " " + std::to_string(mark.made.count()) + " " +
         std::to_string(mark.guardian) + " " + std::to_string(mark.agent) + " " + mark.host + ".";
}

std::optional<FolderMark> DecodeMark(const std::string& text) {
  char format[16] = "", state[16] = "", host[384] = "";
  unsigned long long pid_namespace = 0;
  long long made = 0;
  FolderMark mark;
  const int fields = std::sscanf(text.c_str(), "%15s %15s %llu %lld %d %d %383s", format, state,
                                 &pid_namespace, &made, &mark.guardian, &mark.agent, host);
  mark.has_ended = state == std::string("ended");
  mark.pid_namespace = pid_namespace;
  mark.made = nanoseconds(made);
  mark.host = host;
  if (!mark.host.empty()) mark.host.pop_back();  // the dot that ends the text
  const bool is_whole = fields == 7 && EncodeMark(mark) == text;
  return is_whole ? std::optional(mark) : std::nullopt;
}

FolderMark MarkOfThisJob() {
  return {.pid_namespace = ThisPidNamespace(),
          .made = SinceBoot(),
          .guardian = getppid(),
          .agent = getpid(),
          .host = ThisHost()};
}

bool UsersAreGone(const FolderMark& mark) {
  if (mark.host != ThisHost()) return false;
  if (mark.pid_namespace == 0 || mark.pid_namespace != ThisPidNamespace()) return false;
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
