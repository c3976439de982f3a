#include <cstdlib>
#include <memory>
#include <utility>

#include <rankrun/distributed.h>

#include "base/death_watch.h"
#include "comm/environment.h"
#include "comm/group.h"
#include "comm/join.h"
#include "comm/plugin.h"
#include "comm/throw.h"
#include "store/tcp_store.h"

namespace rankrun {
namespace comm {

// The world process group of this process: global because a process has one
// place in one job, and code deep in a program must find it, as in torch.
class WorldHolder {
 public:
  // Never destroyed: at exit the order against the backend's own static
  // objects is unknown, and the kernel closes sockets anyway.
  static WorldHolder& Instance() {
    static auto* const kInstance = new WorldHolder;
    return *kInstance;
  }

  ProcessGroup* group() { return group_.get(); }
  void Set(std::unique_ptr<Group> group) { group_.reset(new ProcessGroup(std::move(group))); }
  void Clear() { group_.reset(); }
  int NextGeneration() { return generation_++; }

 private:
  std::unique_ptr<ProcessGroup> group_;
  int generation_ = 0;
};

namespace {

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

Result<Environment> CheckedEnvironment(const InitOptions& options) {
  if (options.timeout < std::chrono::milliseconds(1)) {
    return Invalid("Init: timeout is " + std::to_string(options.timeout.count()) +
                   " ms: want at least 1 ms");
  }
  Result<Environment> environment = ReadEnvironment(::getenv);
  if (!environment) return std::move(environment).error().In("Init");
  return environment;
}

Result<std::unique_ptr<Group>> MakeWorld(const Environment& environment, const InitOptions& options,
                                         int generation) {
  const TimePoint deadline = std::chrono::steady_clock::now() + Bounded(options.timeout);
  const DeathWatch deaths = DeathWatch::OfThisProcess();
  auto store =
      store::TcpStore::Connect(environment.master_addr, environment.master_port,
                               {.connect_timeout = Bounded(options.timeout), .deaths = deaths});
  if (!store) {
    return Error{ErrorCode::kPeerLost, std::move(store).error().message}.In(
        "Init of the world process group" + PlaceOf(environment));
  }
  const std::string host = (*store)->local_address().Host();
  return Join(*std::move(store), {.environment = environment,
                                  .timeout = options.timeout,
                                  .deadline = deadline,
                                  .backend = options.backend,
                                  .plugin_folders = PluginFolders(),
                                  .host = ListenHost(environment, host),
                                  .deaths = deaths,
                                  .generation = generation});
}

}  // namespace
}  // namespace comm

ProcessGroup& Init(const InitOptions& options) {
  auto& world = comm::WorldHolder::Instance();
  if (world.group() != nullptr) {
    comm::Throw(comm::Invalid("Init: there is a world process group already: Destroy() it first"));
  }
  const comm::Environment environment = comm::Unwrap(comm::CheckedEnvironment(options));
  world.Set(comm::Unwrap(comm::MakeWorld(environment, options, world.NextGeneration())));
  return *world.group();
}

ProcessGroup& World() {
  ProcessGroup* group = comm::WorldHolder::Instance().group();
  if (group == nullptr) {
    comm::Throw(comm::Invalid("World: there is no world process group: call Init() first"));
  }
  return *group;
}

bool Initialized() { return comm::WorldHolder::Instance().group() != nullptr; }

void Destroy() { comm::WorldHolder::Instance().Clear(); }

ProcessGroup::ProcessGroup(std::unique_ptr<comm::Group> group) : group_(std::move(group)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::global_rank() const { return group_->global_rank(); }
int ProcessGroup::world_size() const { return group_->world_size(); }
GroupState ProcessGroup::state() const { return group_->state(); }
std::string ProcessGroup::broken_reason() const { return group_->broken_reason(); }

void ProcessGroup::AllReduce(Tensor tensor, ReduceOp op, Timeout timeout) {
  comm::Unwrap(group_->AllReduce(tensor, op, timeout));
}

void ProcessGroup::Broadcast(Tensor tensor, int source_global_rank, Timeout timeout) {
  comm::Unwrap(group_->Broadcast(tensor, source_global_rank, timeout));
}

void ProcessGroup::Barrier(Timeout timeout) { comm::Unwrap(group_->Barrier(timeout)); }

void ProcessGroup::MonitoredBarrier(Timeout timeout) {
  comm::Unwrap(group_->MonitoredBarrier(timeout));
}

}  // namespace rankrun
