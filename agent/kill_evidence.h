#pragma once

#include <optional>
#include <string>

#include "agent/attempt_record.h"
#include "agent/memory_events.h"

namespace rankrun::agent {

// The machine's part in the ends of an attempt's workers.
struct KillEvidence {
  std::optional<MemoryEvents> before;  // the attempt's start
  std::optional<MemoryEvents> after;
  std::optional<Space> shared_memory;  // /dev/shm
};

// Why the kernel may have killed `worker`: memory, for a SIGKILL that was not
// ours; a full /dev/shm for a SIGBUS. Empty if nothing speaks for it. Pure.
std::string ExplainKill(const WorkerRecord& worker, const KillEvidence& evidence);

}  // namespace rankrun::agent
