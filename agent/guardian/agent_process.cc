#include "agent/guardian/agent_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/guardian/guardian.h"
#include "agent/process/descendants.h"

namespace rankrun::agent {

Result<AgentProcess> ForkAgent(const std::function<void(GuardianLink)>& body) {
  auto link = GuardianLink::CreatePair();
  if (!link) return std::move(link).error();
  pid_t agent = fork();
  if (agent < 0) return SystemError("start the agent", errno);
  if (agent == 0) {
    setsid();
    prctl(PR_SET_NAME, "rankrun-agent");  // `killall rankrun` must only reach the guardian
    prctl(PR_SET_PDEATHSIG, SIGCONT);     // lets a stopped agent see its guardian's death, too
    BecomeSubreaper();
    { GuardianLink guardians_end = std::move(link->first); }
    body(std::move(link->second));
    _exit(kExitInternalError);  // success requires a goodbye
  }
  auto handle = ProcessHandle::Open(agent);
  if (!handle) {
    kill(agent, SIGKILL);
    while (waitpid(agent, nullptr, 0) < 0 && errno == EINTR) {
    }
    return std::move(handle).error().In("start the agent");
  }
  return AgentProcess{agent, std::move(*handle), std::move(link->first)};
}

}  // namespace rankrun::agent
