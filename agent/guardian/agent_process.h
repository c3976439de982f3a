#pragma once

#include <sys/types.h>

#include <functional>

#include "agent/guardian/guardian_link.h"
#include "base/process/process_handle.h"
#include "base/result.h"

namespace rankrun::agent {

// An agent as its guardian sees it.
struct AgentProcess {
  pid_t pid;
  ProcessHandle handle;
  GuardianLink link;  // the guardian's end
};

// Forks this process, which has no threads. The child, in a session of its own
// and a subreaper, runs `body` with its end of the link and does not return.
// Errors: kSystem, kExhausted; no child exists then.
Result<AgentProcess> ForkAgent(const std::function<void(GuardianLink)>& body);

}  // namespace rankrun::agent
