#include "comm/world/backend_table.h"

#include <map>

#include "base/mutex.h"
#include "comm/hierarchy/backend.h"
#include "comm/shm/backend.h"
#include "comm/tcp/backend.h"
#include "comm/world/outside_backend.h"

namespace rankrun::comm {
namespace {

// Returns the creator of a backend of this library; null: it has none.
BackendCreator BuiltIn(const std::string& name) {
  if (name == kShmBackend) return &shm::ShmBackend::Create;
  if (name == kTcpBackend) return &tcp::CreateBackend;
  if (name == kHierarchicalBackend) return &hierarchy::HierarchicalBackend::Create;
  return nullptr;
}

// Backends that the program has registered. None is ever removed, because groups
// use them until the process ends.
class RegisteredBackends {
 public:
  static RegisteredBackends& Instance() {
    static auto* backends = new RegisteredBackends;
    return *backends;
  }

  // Returns whether the name was free.
  bool Add(const rankrun_backend& backend) {
    MutexLock lock(mutex_);
    auto [added, is_new] = backends_.emplace(backend.name, backend);
    if (is_new) added->second.name = added->first.c_str();
    return is_new;
  }

  // Returns null if there is none.
  const rankrun_backend* Find(const std::string& name) {
    MutexLock lock(mutex_);
    auto found = backends_.find(name);
    return found == backends_.end() ? nullptr : &found->second;
  }

 private:
  Mutex mutex_;
  std::map<std::string, rankrun_backend> backends_ GUARDED_BY(mutex_);
};

// Returns whether rankrun itself gives the name a meaning.
bool IsOurs(const std::string& name) {
  return name == kAutoBackend || name == kGlooBackend || BuiltIn(name) != nullptr;
}

}  // namespace

Result<BackendCreator> FindBackend(const std::string& name,
                                   const std::vector<std::string>& plugin_folders) {
  if (BackendCreator creator = BuiltIn(name)) return creator;
  if (const rankrun_backend* backend = RegisteredBackends::Instance().Find(name)) {
    return BackendCreator(
        [backend](const BackendConfig& config) { return ConnectOutsideBackend(*backend, config); });
  }
  return LoadPlugin(name, plugin_folders);
}

Result<DeviceBackendCreator> FindDeviceBackend(const std::string& name,
                                               const std::vector<std::string>& plugin_folders) {
  bool is_for_cpu = BuiltIn(name) != nullptr || RegisteredBackends::Instance().Find(name);
  if (!is_for_cpu && name != kAutoBackend) return LoadDevicePlugin(name, plugin_folders);
  return WrongMemory(name, "cpu");
}

Result<void> AddBackend(const rankrun_backend& backend) {
  if (auto ok = CheckOutsideBackend(backend); !ok) return ok;
  std::string name = backend.name;
  if (!IsOurs(name) && RegisteredBackends::Instance().Add(backend)) return {};
  return Error{ErrorCode::kInvalid, "the name \"" + name + "\" is taken: want another one"};
}

}  // namespace rankrun::comm
