#pragma once

#include <optional>
#include <string>

#include "agent/process/memory_events.h"
#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// State of the machine before and after an attempt.
struct KillEvidence {
  std::optional<MemoryEvents> before;  // at the start of the attempt
  std::optional<MemoryEvents> after;   // once it has failed
  std::optional<Space> shared_memory;  // /dev/shm
};

// Returns why the kernel may have killed `worker`: no memory, for a SIGKILL
// that was not ours, or a full /dev/shm, for a SIGBUS. Empty without such
// evidence. Pure.
std::string ExplainKill(const WorkerRecord& worker, const KillEvidence& evidence);

}  // namespace rankrun::agent
