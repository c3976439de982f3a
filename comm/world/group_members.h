#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <rankrun/distributed.h>

#include "base/result.h"
#include "comm/world/device_map.h"

// Which ranks a group has, and its name. Pure.
namespace rankrun::comm {

std::vector<int> AllRanks(int world_size);

// Returns the global ranks that the options name, in the order of group ranks.
// Error: kInvalid, a rank is not in the world or is there twice.
Result<std::vector<int>> MembersOf(const GroupOptions& options, int world_size);

// Result of a call that makes groups of the ranks of a parent. All ranks are group
// ranks of the parent.
struct Subgroups {
  std::vector<int> callers = {};  // that make the call
  std::vector<int> members = {};  // of the group of this rank, in its order; may be empty
  std::string wishes = {};        // the groups as text
};

// Error of both: kInvalid, a rank is not in the parent or is there twice, or a list
// is empty.
Result<Subgroups> SplitOf(const std::vector<std::vector<int>>& splits, int rank, int world_size);
// Another error: `excluded` has this rank.
Result<Subgroups> WithoutRanks(const std::vector<int>& excluded, int rank, int world_size);

// Returns the index of `rank`, -1 if it is not there.
int IndexOf(const std::vector<int>& ranks, int rank);

// Returns "backend shm, timeout 1000 ms, description "x"", which members compare.
std::string OptionsInWords(const BackendWish& backend, std::chrono::milliseconds timeout,
                           const std::string& description);

// Returns "0,2,5".
std::string Joined(const std::vector<int>& ranks);

// Returns a name for the group made after `before` others of the same seed.
std::string NameOfGroup(const std::string& seed, int before);

}  // namespace rankrun::comm
