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
  GroupIdentity identity;           // its `backend` is found out
  TimePoint deadline;               // of Join
  std::string backend;              // "auto", or a name
  std::string backend_source = {};  // the variable that gave it; empty: the program
  std::vector<std::string> plugin_folders;
  std::string network_interface = {};  // empty: `host` says
  std::string host;                    // this rank's address for the others
  bool checks_all_calls = false;
};

// Whether an address of this host, to which others are to connect, is of use to
// ranks on `hosts` (host_identity.h). A store in a file, or of the program, does
// not tell how this host is reached.
Result<void> CheckReachable(const std::vector<std::string>& hosts, const std::string& address);

// Makes a process group with all other members, in three stages: load the
// backend (so that a missing one is known before anybody waits), call the roll
// and compare what the members want, connect. The group owns the store; after an
// error `store` is as it was, and the others have been told why, as far as they
// wait. `identity.key_prefix` is this group's alone in the store.
// Errors: as Group's, telling the stage; kMismatch, saying who wants what; what
// keeps another member from joining: "rank 1: <reason>".
Result<std::unique_ptr<Group>> Join(std::unique_ptr<store::Store>&& store,
                                    const JoinOptions& options);

// Tells the other members of a group, in place of Join, why this one cannot.
void RefuseToJoin(store::Store& store, const GroupIdentity& identity, const Error& reason);

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
