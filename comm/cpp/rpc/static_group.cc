// Workers of RPC that are all known from the start: the ranks of a context.

#include <thread>
#include <utility>

#include <rankrun/context.h>
#include <rankrun/objects.h>

#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/tensorpipe_agent.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "comm/world/group_table.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using std::chrono::milliseconds;

constexpr char kContext[] = "rpc";
constexpr milliseconds kBeforeNextLook{1};

class StaticGroup final : public WorkerGroup {
 public:
  explicit StaticGroup(std::unique_ptr<Context> context) : context_(std::move(context)) {}

  void Join(core::Agent& agent, milliseconds limit) override;

 private:
  const std::unique_ptr<Context> context_;
};

// Two looks in a row find no call under way and no call begun in between.
void StaticGroup::Join(core::Agent& agent, milliseconds limit) {
  ProcessGroup& world = context_->World();
  TimePoint deadline = MonotonicClock().Now() + FiniteLimit(limit);
  int64_t begun_before = -1;
  for (;;) {
    std::vector<int64_t> sums{static_cast<int64_t>(agent.unfinished()),
                              static_cast<int64_t>(agent.begun())};
    world.AllReduce(sums, ReduceOp::kSum, CallOptions{comm::TimeLeft(deadline)});
    if (sums[0] == 0 && sums[1] == begun_before) return;
    if (MonotonicClock().Now() >= deadline) {
      ThrowUnfinished(sums[0], limit);
    }
    begun_before = sums[0] == 0 ? sums[1] : -1;
    if (sums[0] != 0) std::this_thread::sleep_for(kBeforeNextLook);
  }
}

std::vector<std::string> TextsOfAll(ProcessGroup& world, const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  std::vector<std::string> texts;
  for (const Object& each : AllGatherObject(world, Object(bytes, bytes + text.size()))) {
    texts.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  }
  return texts;
}

// Throws the first error of all workers; `own`: that of this one, or empty.
void ThrowFirstError(ProcessGroup& world, const std::string& own) {
  for (const std::string& each : TextsOfAll(world, own)) {
    if (!each.empty()) comm::Throw({ErrorCode::kSystem, each});
  }
}

// Returns all workers. Throws the same error on all of them.
std::vector<core::Worker> Gather(ProcessGroup& world, const std::string& name) {
  std::vector<core::Worker> workers;
  core::Roster roster;
  for (std::string& each : TextsOfAll(world, name)) {
    workers.push_back({static_cast<int>(workers.size()), std::move(each)});
    comm::Unwrap(roster.Add(workers.back()));
  }
  return workers;
}

Result<std::unique_ptr<core::Agent>> MakeAgent(
    ProcessGroup& world, const std::vector<core::Worker>& workers,
    std::vector<std::unique_ptr<comm::stream::Connection>> connections, int methods) {
  auto self = static_cast<size_t>(world.group_rank());
  auto agent = core::Agent::Make(
      {.self = workers[self], .methods = methods, .deaths = comm::GroupOf(world).identity().deaths},
      AllMethods());
  if (!agent) return agent;
  std::vector<core::NewPeer> peers;
  for (size_t id = 0; id < workers.size(); ++id) {
    if (id != self) peers.push_back({workers[id], std::move(connections[id])});
  }
  if (auto ok = (*agent)->AddPeers(std::move(peers)); !ok) return std::move(ok).error();
  return agent;
}

}  // namespace

std::unique_ptr<RpcAgent> ConnectStaticGroup(std::shared_ptr<Store> store, const std::string& name,
                                             int rank, int world_size,
                                             const TensorPipeRpcBackendOptions& options) {
  milliseconds limit = FiniteLimit(options.rpc_timeout);
  auto context = std::make_unique<Context>(kContext, InitOptions{.timeout = limit,
                                                                 .init_method = options.init_method,
                                                                 .rank = rank,
                                                                 .world_size = world_size,
                                                                 .store = std::move(store)});
  ProcessGroup& world = context->World();
  std::vector<core::Worker> workers = Gather(world, name);
  auto connections = comm::Unwrap(comm::GroupTable::Of(world).ConnectAgain("rpc", limit));
  auto agent = MakeAgent(world, workers, std::move(connections), options.num_worker_threads);
  ThrowFirstError(world, agent ? "" : "worker " + name + ": " + agent.error().message);
  return std::make_unique<TensorPipeAgent>(std::make_unique<StaticGroup>(std::move(context)),
                                           *std::move(agent));
}

}  // namespace rankrun::rpc
