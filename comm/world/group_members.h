#pragma once

#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "base/result.h"

// Which ranks a group has, and its name. Pure.
namespace rankrun::comm {

std::vector<int> AllRanks(int world_size);

// Returns the global ranks that the options name, in the order of group ranks.
// Error: kInvalid, a rank is not in the world or is there twice.
Result<std::vector<int>> MembersOf(const GroupOptions& options, int world_size);

// Returns "0,2,5".
std::string Joined(const std::vector<int>& ranks);

// Returns a name for the group made after `before` others of the same seed.
std::string NameOfGroup(const std::string& seed, int before);

}  // namespace rankrun::comm
