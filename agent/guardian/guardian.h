#pragma once

#include <functional>

#include "agent/guardian/incarnation.h"
#include "agent/job/exit_codes.h"

namespace rankrun::agent {

struct GuardedJob {
  std::function<void(Incarnation&)> agent_main;  // runs in each incarnation
  // Called once if the job ends without an agent. `why`: a sentence for users.
  std::function<void(const JobRecord& job, const Goodbye& end, const std::string& why)> on_end;
  // Variable that moves from the environment to JobSecrets; null: none.
  const char* secret_variable = nullptr;
};

// Forks this process into a guardian and an agent. The guardian remains the
// process that the user started. The agent runs `agent_main` in a session of
// its own and returns when the job is over. Call this first of all in main(),
// before any thread, handler or descriptor of ours exists.
//
// The guardian passes signals on; job_signals.h has their meanings. Signals
// that were ignored at the start, as by nohup, stay ignored. TSTP and CONT stop
// and continue the workers. The guardian adopts and kills all processes that
// the agent leaves behind, and exits as the agent's goodbye says, never before
// every descendant is gone. It spares children that existed before (`sleep &
// exec rankrun`), but not the orphans that they leave.
//
// An agent may die without a goodbye, or be killed because it was silent for
// longer than the lease of its last heartbeat. The guardian then starts the
// next incarnation, if the JobRecord allows that and nobody has asked for the
// end. Otherwise it calls `on_end` and exits. Does not return.
[[noreturn]] void RunGuarded(const GuardedJob& job);

}  // namespace rankrun::agent
