#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/group.h"
#include "store/store.h"

namespace rankrun::comm {

struct JoinOptions {
  GroupIdentity identity;  // its `backend` is found out
  TimePoint deadline;      // of Join
  std::string backend;     // "auto", or a name
  std::vector<std::string> plugin_folders;
  std::string network_interface = {};  // empty: `host` says
  std::string host;                    // this rank's address for the others
  bool checks_all_calls = false;
};

// Makes a process group with all other members, in three stages: load the
// backend (so that a missing one is known before anybody waits), call the roll
// and compare what the members want, connect. The group owns the store.
// `identity.key_prefix` is this group's alone in the store.
// Errors: as Group's, telling the stage; kMismatch, saying who wants what.
Result<std::unique_ptr<Group>> Join(std::unique_ptr<store::Store> store,
                                    const JoinOptions& options);

// Whether all members have said the same: said[i] by ranks[i]. Error:
// kMismatch, "ranks 0, 2 want ...; rank 1 wants ...".
Result<void> CheckAlike(const std::vector<int>& ranks, const std::vector<std::string>& said);

// Which backend "auto" means for members that say of their hosts: one string
// per member. A pure function.
struct Choice {
  std::string backend;
  std::string why;
};
Choice ChooseBackend(const std::vector<std::string>& hosts);

}  // namespace rankrun::comm
