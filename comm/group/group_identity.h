#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status/death_watch.h"

namespace rankrun::comm {

inline constexpr char kWorldName[] = "world";

// Identity of a process group, and this rank's place in it. A value.
struct GroupIdentity {
  int global_rank;
  std::vector<int> global_ranks;  // of the members, by group rank
  int group_rank;                 // -1: this rank is not a member
  std::chrono::milliseconds timeout;
  std::string key_prefix;
  std::string context = {};  // name of the context; empty: that of Init
  std::string name = kWorldName;
  std::string description = {};
  std::string backend = {};  // name of the backend
  DeathWatch deaths = {};
  bool is_strict = false;                     // use on a rank that is not a member is an error
  bool checks_all_calls = false;              // before they run: debug level DETAIL
  std::chrono::milliseconds slow_call{1000};  // time from which the log calls a collective slow
  std::optional<int> store_rank = {};         // global rank that serves the store, if one does

  bool is_world() const { return name == kWorldName; }

  int world_size() const { return static_cast<int>(global_ranks.size()); }
};

// Returns the description, or the name if there is none; in the context "rpc" as
// "rpc/world".
std::string DisplayName(const GroupIdentity& identity);

// Returns "the world process group, rank 1 of 4" or
// "process group "x", global rank 5 (1 of 2)"; in a context "the world of context
// "rpc", rank 1 of 4" or "process group "rpc/x", ...".
std::string PlaceIn(const GroupIdentity& identity);

}  // namespace rankrun::comm
