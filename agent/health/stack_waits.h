#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/health/stack_suspect.h"

// Waits of ranks that show nothing but their stacks and connections, in words. Pure.
namespace rankrun::agent {

// Returns a sentence for each address that ranks dial without success, for collectives that some
// ranks have entered and others have not, and for each worker whose data others wait for. `doing`
// has what each rank does: "sleeping (clock_nanosleep)". Empty: nothing is visible.
std::vector<std::string> VisibleWaits(const std::vector<WorkerSample>& samples,
                                      const std::vector<RankDigest>& digests,
                                      const std::map<int, std::string>& doing);

}  // namespace rankrun::agent
