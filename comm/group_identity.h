#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/death_watch.h"

namespace rankrun::comm {

inline constexpr char kWorldName[] = "world";

// Which process group this is, and this rank's place in it. A value.
struct GroupIdentity {
  int global_rank;
  std::vector<int> global_ranks;  // of the members, by group rank
  int group_rank;                 // -1: this rank is no member
  std::chrono::milliseconds timeout;
  std::string key_prefix;
  std::string name = kWorldName;
  std::string description = {};
  std::string backend = {};  // its name
  DeathWatch deaths = {};
  bool is_strict = false;  // use by a rank that is no member is an error

  bool is_world() const { return name == kWorldName; }

  int world_size() const { return static_cast<int>(global_ranks.size()); }
};

// The description, if it has one, else the name.
const std::string& ShownName(const GroupIdentity& identity);

// "the world process group, rank 1 of 4"; "process group "x", global rank 5 (1 of 2)".
std::string PlaceIn(const GroupIdentity& identity);

}  // namespace rankrun::comm
