#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/algorithm.h"
#include "comm/group/group.h"
#include "comm/world/device_map.h"
#include "store/store.h"

namespace rankrun::comm {

struct JoinGroupOptions {
  GroupIdentity identity;  // JoinGroup sets its `backend`
  TimePoint deadline;      // of JoinGroup
  BackendWish backend;
  std::string backend_source = {};  // variable that names it; empty: the program does
  std::vector<std::string> plugin_folders;
  std::string network_interface = {};            // empty: the one that has `host`
  std::string host;                              // this rank's address for the others
  bool connects_devices = false;                 // in a call after JoinGroup that all members make
  std::shared_ptr<void> device_connection = {};  // DeviceBackendConfig's
  AlgorithmTable algorithms = {};
};

// Fails if ranks on other `hosts` (host_identity.h) cannot connect to `address`
// of this host, because it is a loopback address. This happens with a store in
// a file or of the program, which does not show an address that others reach.
Result<void> CheckReachable(const std::vector<std::string>& hosts, const std::string& address);

// Creates a process group together with all other members, in three stages:
// 1. Load the backend, so that a missing one fails before any rank waits.
// 2. Wait for all members and compare their options.
// 3. Connect.
// The group owns the store. After an error `store` is unchanged, and members that
// wait receive the reason. No other group uses `identity.key_prefix`.
// Errors: as Group's, with the stage; kMismatch, with the options of each rank;
// the reason of another member that cannot join, "rank 1: <reason>".
Result<std::unique_ptr<Group>> JoinGroup(std::unique_ptr<store::Store>&& store,
                                         const JoinGroupOptions& options);

// Publishes to the other members why this one cannot join. Called in place of
// JoinGroup.
void RefuseToJoin(store::Store& store, const GroupIdentity& identity, const Error& reason);

struct Choice {
  std::string backend;
  std::string why;
};
// Returns the backend that "auto" means for members with these host identities,
// one per member. Pure.
Choice ChooseBackend(const std::vector<std::string>& hosts);

}  // namespace rankrun::comm
