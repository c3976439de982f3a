#include "agent/report/kill_evidence.h"

#include <signal.h>

#include <cstdio>
#include <iterator>

namespace rankrun::agent {
namespace {

// Returns "64 GiB", "1.5 MiB".
std::string FormatSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, "%.3g %s", size, kUnits[unit]);
  return text;
}

std::string OutOfMemory(const KillEvidence& evidence) {
  if (!evidence.before || !evidence.after) return "";
  const MemoryEvents& after = *evidence.after;
  bool same = evidence.before->of_cgroup == after.of_cgroup;
  if (!same || after.oom_kills <= evidence.before->oom_kills) return "";
  std::string where = after.of_cgroup ? "in this cgroup" : "on this machine";
  if (after.limit) where += " (limit " + FormatSize(*after.limit) + ")";
  return "the kernel's OOM killer was at work " + where;
}

std::string FullSharedMemory(const KillEvidence& evidence) {
  if (!evidence.shared_memory || evidence.shared_memory->bytes == 0) return "";
  // The memory of the killed workers is free again, but /dev/shm stays full.
  bool full = evidence.shared_memory->available < evidence.shared_memory->bytes / 100;
  return full ? "/dev/shm is full (" + FormatSize(evidence.shared_memory->bytes) + ")" : "";
}

}  // namespace

std::string ExplainKill(const WorkerRecord& worker, const KillEvidence& evidence) {
  if (!worker.exit || !worker.exit->signaled) return "";
  int number = worker.exit->value;
  if (number == worker.sent_signal || number == worker.passed_signal) return "";
  if (number == SIGKILL) return OutOfMemory(evidence);
  if (number == SIGBUS) return FullSharedMemory(evidence);
  return "";
}

}  // namespace rankrun::agent
