#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "agent/health/waiting_call.h"

namespace rankrun::agent {

// Returns the descriptors for which a thread of a process waits in `call`; if it waits for the end
// of another thread, those for which that one waits. None while it sleeps, or waits for a child, a
// signal or a lock: a lock does not tell for whom. No value: it runs, or this cannot be known.
// Thread: any, but not the loop's.
std::optional<std::vector<int>> AwaitedDescriptors(pid_t pid, const WaitingCall& call);

}  // namespace rankrun::agent
