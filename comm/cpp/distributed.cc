#include <cstdlib>
#include <utility>

#include <rankrun/distributed.h>

#include "comm/core/throw.h"
#include "comm/group/group.h"
#include "comm/world/backend_table.h"
#include "comm/world/contexts.h"
#include "comm/world/device_map.h"
#include "comm/world/environment.h"
#include "comm/world/plugin.h"

namespace rankrun {

using comm::DefaultContext;

namespace {

// Returns `result`, or throws its error with the prefix `what`.
ProcessGroup& Made(const char* what, Result<ProcessGroup*> result) {
  if (!result) comm::Throw(std::move(result).error().In(what));
  return **result;
}

}  // namespace

ProcessGroup& Init(const InitOptions& options) {
  return Made("Init", DefaultContext().MakeWorld(options));
}

ProcessGroup& World() {
  ProcessGroup* world = DefaultContext().world();
  if (world == nullptr) {
    comm::Throw({ErrorCode::kInvalid, "World: there is no world process group: call Init() first"});
  }
  return *world;
}

bool Initialized() { return DefaultContext().world() != nullptr; }

ProcessGroup& NewGroup(const GroupOptions& options) {
  return Made("NewGroup", DefaultContext().MakeGroup(options));
}

void Destroy() { DefaultContext().Clear(); }

void Destroy(ProcessGroup& group) {
  auto ok = comm::GroupTable::Of(group).Remove(group);
  if (!ok) comm::Throw(std::move(ok).error().In("Destroy"));
}

void Abort(ProcessGroup& group, const std::string& reason) {
  auto ok = comm::GroupTable::Of(group).Abort(group, reason);
  if (!ok) comm::Throw(std::move(ok).error().In("Abort"));
}

bool BackendAvailable(const std::string& name) {
  auto map = comm::ParseDeviceMap(comm::BackendName(name));
  if (!map) return false;
  const auto folders = comm::PluginFolders();
  return (map->cpu == comm::kAutoBackend || comm::FindBackend(map->cpu, folders)) &&
         (map->cuda.empty() || comm::FindDeviceBackend(map->cuda, folders));
}

void RegisterBackend(const rankrun_backend& backend) {
  if (auto ok = comm::AddBackend(backend); !ok) {
    comm::Throw(Error(ok.error()).In("RegisterBackend"));
  }
}

void RegisterBackend(const rankrun_device_backend& backend) {
  if (auto ok = comm::AddBackend(backend); !ok) {
    comm::Throw(Error(ok.error()).In("RegisterBackend"));
  }
}

int NodeLocalRank(int fallback) {
  auto local_rank = comm::LocalRankIn(std::getenv, fallback);
  if (!local_rank) comm::Throw(std::move(local_rank).error().In("NodeLocalRank"));
  return *local_rank;
}

bool LaunchedByAgent() { return std::getenv("TORCHELASTIC_RUN_ID") != nullptr; }

}  // namespace rankrun
