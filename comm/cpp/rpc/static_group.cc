// Workers of RPC that are all known from the start: the ranks of a context.

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include <rankrun/context.h>
#include <rankrun/diagnosis/abort.h>
#include <rankrun/future.h>
#include <rankrun/objects.h>

#include "base/interruptible_call.h"
#include "comm/core/part_of.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/cpp/rpc/device_data.h"
#include "comm/cpp/rpc/group_kind.h"
#include "comm/cpp/rpc/group_links.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/worker_agent.h"
#include "comm/world/environment.h"
#include "comm/world/more_connections.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using std::chrono::milliseconds;

constexpr char kContext[] = "rpc";
constexpr milliseconds kBeforeNextLook{1};
// Time in which the last bytes of a worker that ends reach the others.
constexpr milliseconds kTimeToEnd{1000};

using Connections = std::vector<std::unique_ptr<comm::stream::Connection>>;

class StaticGroup final : public WorkerGroup {
 public:
  StaticGroup(std::unique_ptr<StaticMark> mark, const InitOptions& place)
      : mark_(std::move(mark)), context_(std::make_unique<Context>(kContext, place)) {
    if (mark_ != nullptr && world().global_rank() == 0) mark_->Tidy();
  }
  ~StaticGroup() override {
    if (links_ != nullptr) links_->Stop();
  }

  ProcessGroup& world() const { return context_->World(); }
  // Connects this worker with all others. Errors: those of comm::ConnectAgain, or of
  // GroupLinks::Make.
  Result<Connections> Connect(const StaticGroupOptions& options);
  void Join(core::Agent& agent, milliseconds limit) override;
  void Leave() override;

 private:
  void AwaitCalls(const core::Agent& agent, milliseconds limit);

  const std::unique_ptr<StaticMark> mark_;  // may be null
  std::unique_ptr<GroupLinks> links_;       // null: connections of their own
  const std::unique_ptr<Context> context_;
};

Result<Connections> StaticGroup::Connect(const StaticGroupOptions& options) {
  milliseconds limit = FiniteLimit(options.rpc_timeout);
  if (options.link_threads == 0) {
    return comm::ConnectAgain(world(), "rpc", limit);
  }
  std::vector<Fd> sockets;
  auto links = GroupLinks::Make(*context_, options.link_threads, sockets);
  if (!links) return std::move(links).error();
  links_ = *std::move(links);
  Connections connections;
  for (Fd& socket : sockets) {
    connections.push_back(comm::stream::ConnectionOver(std::move(socket)));
  }
  return connections;
}

void StaticGroup::Leave() {
  if (mark_ != nullptr) mark_->Remove();
  if (links_ != nullptr) links_->AwaitEnd(MonotonicClock().Now() + kTimeToEnd);
}

void StaticGroup::Join(core::Agent& agent, milliseconds limit) {
  const comm::PartOf part_of(ProgramCall::kRpcShutdown);
  AwaitCalls(agent, limit);
  if (mark_ == nullptr) return;
  mark_->Remove();
  try {
    // A worker that goes on may make a dynamic group at once.
    world().Barrier(FiniteLimit(limit));
  } catch (const DistError&) {
    if (InterruptibleCall::WasInterrupted()) throw;
    // A worker has ended without the barrier; no other one waits for it.
  }
}

// A worker that has come to its end serves the others until they come to theirs, which may take as
// long as they like. So it does not count as a rank that waits for them.
void SumWhileServing(ProcessGroup& world, std::vector<int64_t>& sums, milliseconds limit) {
  const Work work = world.AllReduce(sums, ReduceOp::kSum, {.timeout = limit, .async = true});
  const Promise<void> ended;
  work.Then([ended] { ended.SetValue(); });
  try {
    ended.future().Wait();
  } catch (const DistNetworkError&) {  // the program interrupts the call
    Abort(world, InterruptibleCall::kText);
    const InterruptibleCall::Deferred deferred;
    ended.future().Wait();  // then nothing uses `sums` any more
    throw;
  }
  work.Wait();  // throws its error
}

// Two looks in a row find no call under way and no call begun in between.
void StaticGroup::AwaitCalls(const core::Agent& agent, milliseconds limit) {
  TimePoint deadline = MonotonicClock().Now() + FiniteLimit(limit);
  int64_t begun_before = -1;
  for (;;) {
    std::vector<int64_t> sums{static_cast<int64_t>(agent.unfinished()),
                              static_cast<int64_t>(agent.begun())};
    SumWhileServing(world(), sums, comm::TimeLeft(deadline));
    ThrowIfInterrupted();
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

std::vector<core::WorkerDevices> DevicesOfAll(ProcessGroup& world, const core::WorkerDevices& own) {
  std::vector<core::WorkerDevices> all;
  for (const std::string& each : TextsOfAll(world, core::TextOf(own))) {
    all.push_back(comm::Unwrap(core::WorkerDevicesIn(each)));
  }
  return all;
}

bool NameDevices(const std::vector<core::WorkerDevices>& workers) {
  return std::any_of(workers.begin(), workers.end(),
                     [](const auto& each) { return each.names_devices(); });
}

// Returns all workers. Throws the same error on all of them. Only if some use GPUs are they
// counted, because that starts CUDA.
std::vector<core::WorkerDevices> Gather(ProcessGroup& world, core::WorkerDevices own) {
  auto all = DevicesOfAll(world, own);
  core::Roster roster;
  for (size_t id = 0; id < all.size(); ++id) {
    comm::Unwrap(roster.Add({static_cast<int>(id), all[id].worker}));
  }
  if (!NameDevices(all)) return all;
  own.gpus = GpuCount();
  all = DevicesOfAll(world, own);
  comm::Unwrap(core::CheckDeviceMaps(all, true));
  return all;
}

Result<std::unique_ptr<core::Agent>> MakeAgent(ProcessGroup& world,
                                               const std::vector<core::WorkerDevices>& workers,
                                               Connections connections, int methods) {
  auto self = static_cast<size_t>(world.group_rank());
  auto worker = [&](size_t id) { return core::Worker{static_cast<int>(id), workers[id].worker}; };
  auto agent = core::Agent::Make(
      {.self = worker(self), .methods = methods, .deaths = comm::DeathsOf(world)}, AllMethods());
  if (!agent) return agent;
  std::vector<core::NewPeer> peers;
  for (size_t id = 0; id < workers.size(); ++id) {
    if (id != self) peers.push_back({worker(id), std::move(connections[id])});
  }
  if (auto ok = (*agent)->AddPeers(std::move(peers)); !ok) return std::move(ok).error();
  return agent;
}

// Meets the other workers in the store where those of a dynamic group meet, too. Returns null
// if there is none, or the place of this worker is wrong, which the context says.
std::unique_ptr<StaticMark> MeetInStore(const std::shared_ptr<Store>& store,
                                        const StaticWorker& worker, const std::string& init_method,
                                        milliseconds limit) {
  bool is_elsewhere = store == nullptr && init_method != InitOptions().init_method;
  if (is_elsewhere) return nullptr;
  auto given = [](int number) { return number >= 0 ? std::optional(number) : std::nullopt; };
  auto place = comm::ReadEnvironment(getenv, {.global_rank = given(worker.rank),
                                              .world_size = given(worker.world_size),
                                              .address = store != nullptr});
  if (!place) return nullptr;
  auto open = comm::FindOpenPlace(kContext, store, limit, getenv);
  if (!open) return nullptr;
  auto mark = std::make_unique<StaticMark>(*std::move(open));
  auto entered = mark->Enter({worker.name, place->global_rank, place->world_size}, limit);
  if (!entered && entered.error().code == ErrorCode::kTimeout) {
    comm::Throw(std::move(entered).error().In("rpc::Init of worker " + worker.name));
  }
  comm::Unwrap(entered);
  return mark;
}

}  // namespace

std::unique_ptr<RpcAgent> ConnectStaticGroup(std::shared_ptr<Store> store, const std::string& name,
                                             int rank, int world_size,
                                             const StaticGroupOptions& options) {
  milliseconds limit = FiniteLimit(options.rpc_timeout);
  auto mark = MeetInStore(store, {name, rank, world_size}, options.init_method, limit);
  auto group =
      std::make_unique<StaticGroup>(std::move(mark), InitOptions{.timeout = limit,
                                                                 .init_method = options.init_method,
                                                                 .rank = rank,
                                                                 .world_size = world_size,
                                                                 .store = std::move(store)});
  ProcessGroup& world = group->world();
  auto workers = Gather(world, {.worker = name, .maps = options.maps, .devices = options.devices});
  auto devices = std::make_shared<core::DeviceTable>();
  devices->Set(name, workers);
  auto connections = comm::Unwrap(group->Connect(options));
  auto agent = MakeAgent(world, workers, std::move(connections), options.methods);
  ThrowFirstError(world, agent ? "" : "worker " + name + ": " + agent.error().message);
  return std::make_unique<WorkerAgent>(std::move(group), *std::move(agent), std::move(devices));
}

}  // namespace rankrun::rpc
