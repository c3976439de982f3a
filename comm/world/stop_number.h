#pragma once

#include <cstdint>
#include <string>

namespace rankrun {
class StatusPage;
}

namespace rankrun::comm {

// One stop of this process at a breakpoint.
struct Stop {
  int global_rank;
  uint32_t hold;  // its number
};

// Returns the number of a new stop. The end of the debugger of an earlier stop, which this
// process may have left already, does not concern it.
uint32_t NextHold(const StatusPage* page);

// Sends "<what> <rank> <pid> <number><rest>" to the agent (agent/worker/breakpoint_pipe.h).
// Returns false if there is none.
bool TellAgent(const std::string& what, const Stop& stop, const std::string& rest = "");

}  // namespace rankrun::comm
