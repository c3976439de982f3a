#include "comm/world/more_connections.h"

#include <utility>

#include "comm/group/process_group_access.h"
#include "comm/tcp/connect.h"
#include "comm/world/group_table.h"

namespace rankrun::comm {

Result<std::vector<std::unique_ptr<stream::Connection>>> GroupTable::ConnectAgain(
    const std::string& name, std::chrono::milliseconds timeout) {
  const GroupIdentity& all = TheWorld().identity();
  auto store = TheWorld().store().Clone(timeout);
  if (!store) return std::move(store).error();
  BackendConfig config{.global_ranks = all.global_ranks,
                       .group_rank = all.group_rank,
                       .store = **store,
                       .key_prefix = all.key_prefix + "/" + name,
                       .network_interface = world_.place.network_interface,
                       .host = world_.host,
                       .timeout = timeout,
                       .deaths = all.deaths};
  auto sockets = tcp::ConnectAll(config);
  if (!sockets) return std::move(sockets).error();
  std::vector<std::unique_ptr<stream::Connection>> connections(sockets->size());
  for (size_t rank = 0; rank < sockets->size(); ++rank) {
    if (static_cast<int>(rank) == all.group_rank) continue;
    Fd& socket = (*sockets)[rank].control;
    connections[rank] = stream::ConnectionOver(std::move(socket));
  }
  return connections;
}

Result<std::vector<std::unique_ptr<stream::Connection>>> ConnectAgain(
    const ProcessGroup& world, const std::string& name, std::chrono::milliseconds timeout) {
  return GroupTable::Of(world).ConnectAgain(name, timeout);
}

DeathWatch DeathsOf(const ProcessGroup& group) { return GroupOf(group).identity().deaths; }

}  // namespace rankrun::comm
