#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/result.h"
#include "comm/environment.h"
#include "comm/group.h"
#include "store/store.h"

namespace rankrun::comm {

struct JoinOptions {
  Environment environment;
  std::chrono::milliseconds timeout;  // of the group's operations
  TimePoint deadline;                 // of Join
  std::string backend;
  std::vector<std::string> plugin_folders;
  std::string host;  // this rank's address for the others
  DeathWatch deaths = {};
  int generation;  // how many groups this process has tried to make before
};

// Makes the world process group with all other ranks, in three stages: load
// the backend (so that a missing one is known before anybody waits), call the
// roll, connect. The group owns the store. Keys are apart by attempt and
// generation: a store may have seen others.
// Errors: as Group's, telling the stage.
Result<std::unique_ptr<Group>> Join(std::unique_ptr<store::Store> store,
                                    const JoinOptions& options);

}  // namespace rankrun::comm
