// The registry of RPC's backends.

#include <utility>

#include <rankrun/rpc/backend.h>

#include "base/mutex.h"
#include "comm/cpp/rpc/built_in.h"
#include "comm/cpp/rpc/running.h"

namespace rankrun::rpc {
namespace internal {

// Lives as long as the process.
struct RegisteredBackend {
  static BackendType TypeOf(const RegisteredBackend* backend) { return BackendType(backend); }
  static const RegisteredBackend& Of(const BackendType& type) { return *type.backend_; }

  std::string name;
  BackendHandlers handlers;
};

}  // namespace internal

namespace {

using internal::RegisteredBackend;

struct Registry {
  Registry() {
    AddBuiltIn(kTensorPipe, TensorPipeHandlers());
    AddBuiltIn(kProcessGroup, ProcessGroupHandlers());
  }

  void AddBuiltIn(const char* name, BackendHandlers handlers) {
    auto* made = new RegisteredBackend{name, std::move(handlers)};
    MutexLock lock(mutex);
    backends.emplace(name, made);
  }

  Mutex mutex;
  std::map<std::string, const RegisteredBackend*, std::less<>> backends GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static auto& registry = *new Registry;
  return registry;
}

}  // namespace

RpcAgent::~RpcAgent() = default;

WorkerInfo RpcAgent::Find(const To& to) const {
  std::string known;
  for (const WorkerInfo& each : GetWorkerInfos()) {
    bool has_name = !to.name() || each.name == *to.name();
    if (has_name && (to.id() == -1 || each.id == to.id())) return each;
    known += (known.empty() ? "" : ", ") + each.name;
  }
  std::string wanted = to.name() ? *to.name() : "with the id " + std::to_string(to.id());
  ThrowInvalid("there is no worker " + wanted + ": want " + known);
}

bool RpcAgent::IsLost(int /*worker*/) const { return false; }
DevicePairs RpcAgent::GetDeviceMap(const WorkerInfo& /*callee*/) const { return {}; }
DevicePairs RpcAgent::GetReverseDeviceMap(const WorkerInfo& /*caller*/) const { return {}; }
bool RpcAgent::MayArriveOn(const Device& /*device*/) const { return true; }

const std::string& BackendType::name() const { return backend_->name; }
std::string BackendType::Text() const { return "BackendType." + name(); }

bool BackendRegistered(const std::string& name) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  return registry.backends.contains(name);
}

BackendType RegisterBackend(const std::string& name, BackendHandlers handlers) {
  if (name.empty()) ThrowInvalid("RegisterBackend: the name of the RPC backend is empty");
  if (handlers.construct_options == nullptr || handlers.init == nullptr) {
    ThrowInvalid("RegisterBackend: RPC backend " + name + " lacks a function: want both");
  }
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  if (registry.backends.contains(name)) {
    ThrowInvalid("RegisterBackend: RPC backend " + name + " is registered already");
  }
  const auto* made = new RegisteredBackend{name, std::move(handlers)};
  registry.backends.emplace(name, made);
  return RegisteredBackend::TypeOf(made);
}

BackendType FindBackend(const std::string& name) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  auto found = registry.backends.find(name);
  if (found != registry.backends.end()) return RegisteredBackend::TypeOf(found->second);
  std::string known;
  for (const auto& [each, backend] : registry.backends) known += (known.empty() ? "" : ", ") + each;
  ThrowInvalid("there is no RPC backend " + name + ": want " + known);
}

void ThrowOtherOptions(const std::string& backend, const std::string& wanted) {
  ThrowInvalid("the options are not those of " + backend + ": want " + wanted);
}

std::shared_ptr<RpcBackendOptions> ConstructRpcBackendOptions(const BackendType& backend,
                                                              std::chrono::milliseconds rpc_timeout,
                                                              const std::string& init_method,
                                                              const OptionMap& options) {
  return RegisteredBackend::Of(backend).handlers.construct_options(rpc_timeout, init_method,
                                                                   options);
}

std::unique_ptr<RpcAgent> MakeAgent(const BackendType& backend, std::shared_ptr<Store> store,
                                    const std::string& name, int rank,
                                    std::optional<int> world_size,
                                    std::shared_ptr<RpcBackendOptions> options) {
  auto agent = RegisteredBackend::Of(backend).handlers.init(std::move(store), name, rank,
                                                            world_size, std::move(options));
  if (agent == nullptr) ThrowInvalid("RPC backend " + backend.name() + " has made no agent");
  return agent;
}

std::unique_ptr<RpcAgent> InitBackend(const BackendType& backend, std::shared_ptr<Store> store,
                                      const std::string& name, int rank,
                                      std::optional<int> world_size,
                                      std::shared_ptr<RpcBackendOptions> options) {
  if (store == nullptr) {
    ThrowInvalid("InitBackend: the store is null: want the one in which the workers meet");
  }
  return MakeAgent(backend, std::move(store), name, rank, world_size, std::move(options));
}

}  // namespace rankrun::rpc
