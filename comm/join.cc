#include "comm/join.h"

#include <algorithm>
#include <utility>

#include "comm/plugin.h"
#include "comm/store_barrier.h"

namespace rankrun::comm {
namespace {

std::string KeyPrefix(const JoinOptions& options) {
  return "rankrun/attempt_" + std::to_string(options.environment.attempt) + "/world_" +
         std::to_string(options.generation);
}

std::chrono::milliseconds Left(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

Result<std::unique_ptr<Backend>> Connect(const BackendPlugin& plugin, store::Store& store,
                                         const JoinOptions& options) {
  return plugin.create({
      .global_rank = options.environment.global_rank,
      .world_size = options.environment.world_size,
      .store = store,
      .key_prefix = KeyPrefix(options) + "/" + options.backend,
      .network_interface = options.environment.network_interface,
      .host = options.host,
      .timeout = Left(options.deadline),
  });
}

}  // namespace

Result<std::unique_ptr<Group>> Join(std::unique_ptr<store::Store> store,
                                    const JoinOptions& options) {
  const Environment& environment = options.environment;
  const std::string what = "Init of the world process group" + PlaceOf(environment);
  const Result<const BackendPlugin*> plugin = LoadPlugin(options.backend, options.plugin_folders);
  if (!plugin) return Error(plugin.error()).In(what);

  auto barrier = std::make_unique<StoreBarrier>(*store, KeyPrefix(options) + "/barrier",
                                                environment.global_rank, environment.world_size);
  if (auto ok = barrier->Pass(Left(options.deadline)); !ok) {
    return std::move(ok).error().In(what + ": wait for all ranks");
  }
  auto backend = Connect(**plugin, *store, options);
  if (!backend) {
    return std::move(backend).error().In(what + ": connect to the other ranks");
  }
  const Group::Identity identity{.global_rank = environment.global_rank,
                                 .world_size = environment.world_size,
                                 .timeout = options.timeout,
                                 .key_prefix = KeyPrefix(options),
                                 .deaths = options.deaths};
  return std::make_unique<Group>(identity, std::move(store), std::move(barrier),
                                 *std::move(backend));
}

}  // namespace rankrun::comm
