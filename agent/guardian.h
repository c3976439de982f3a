#pragma once

#include <functional>

#include "agent/exit_codes.h"
#include "agent/incarnation.h"

namespace rankrun::agent {

// Forks this process into a guardian, which stays the process that the user
// started, and an agent, which runs `agent_main` in a session of its own and
// returns when the job is over. To be called first of all in main(): before
// any thread, any handler and any descriptor of ours.
//
// The guardian passes signals on (job_signals.h has their meanings; those that
// were ignored when we were started, as by nohup, stay so; TSTP and CONT stop
// and continue the workers), adopts what the agent
// leaves behind and kills it, and ends as the agent's goodbye says: never
// before every descendant is gone. A process that was our child before us
// (`sleep & exec rankrun`) is not touched; orphans that it leaves are.
// An agent that dies without a goodbye, or is silent for longer than the lease
// of its last heartbeat and is killed for that, is followed by a fresh one, the
// next incarnation, if its JobRecord allows that and nobody has asked for the
// end. `agent_main` runs in each of them.
// Does not return.
[[noreturn]] void RunGuarded(const std::function<void(Incarnation&)>& agent_main);

}  // namespace rankrun::agent
