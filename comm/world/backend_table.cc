#include "comm/world/backend_table.h"

#include <functional>
#include <map>

#include "base/mutex.h"
#include "comm/hierarchy/backend.h"
#include "comm/shm/backend.h"
#include "comm/tcp/backend.h"
#include "comm/world/outside_backend.h"
#include "comm/world/outside_devices.h"

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
    return AddTo(for_cpu_, backend);
  }
  bool Add(const rankrun_device_backend& backend) {
    MutexLock lock(mutex_);
    return AddTo(for_devices_, backend);
  }

  // Return null if there is none.
  const rankrun_backend* Find(const std::string& name) {
    MutexLock lock(mutex_);
    return FindIn(for_cpu_, name);
  }
  const rankrun_device_backend* FindForDevices(const std::string& name) {
    MutexLock lock(mutex_);
    return FindIn(for_devices_, name);
  }

  std::vector<std::string> Names() {
    MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, backend] : for_cpu_) names.push_back(name);
    for (const auto& [name, backend] : for_devices_) names.push_back(name);
    return names;
  }

 private:
  template <typename Description>
  using Table = std::map<std::string, Description, std::less<>>;

  template <typename Description>
  static bool AddTo(Table<Description>& table, const Description& backend) {
    auto [added, is_new] = table.emplace(backend.name, backend);
    if (is_new) added->second.name = added->first.c_str();
    return is_new;
  }
  template <typename Description>
  static const Description* FindIn(const Table<Description>& table, const std::string& name) {
    auto found = table.find(name);
    return found == table.end() ? nullptr : &found->second;
  }

  Mutex mutex_;
  Table<rankrun_backend> for_cpu_ GUARDED_BY(mutex_);
  Table<rankrun_device_backend> for_devices_ GUARDED_BY(mutex_);
};

// Returns whether rankrun itself gives the name a meaning.
bool IsOurs(const std::string& name) {
  return name == kAutoBackend || name == kGlooBackend || name == kNcclBackend ||
         BuiltIn(name) != nullptr;
}

}  // namespace

Result<BackendCreator> FindBackend(const std::string& name,
                                   const std::vector<std::string>& plugin_folders) {
  if (BackendCreator creator = BuiltIn(name)) return creator;
  auto& registered = RegisteredBackends::Instance();
  if (const rankrun_backend* backend = registered.Find(name)) return CreatorOf(*backend);
  if (registered.FindForDevices(name) != nullptr) return WrongMemory(name, "cuda");
  return LoadPlugin(name, plugin_folders);
}

Result<DeviceBackendCreator> FindDeviceBackend(const std::string& name,
                                               const std::vector<std::string>& plugin_folders) {
  auto& registered = RegisteredBackends::Instance();
  if (const rankrun_device_backend* backend = registered.FindForDevices(name)) {
    return CreatorOf(*backend);
  }
  bool is_for_cpu = BuiltIn(name) != nullptr || registered.Find(name) != nullptr;
  if (!is_for_cpu && name != kAutoBackend) return LoadDevicePlugin(name, plugin_folders);
  return WrongMemory(name, "cpu");
}

namespace {

// Registers a backend that was checked.
template <typename Description>
Result<void> Register(const Description& backend) {
  std::string name = backend.name;
  if (!IsOurs(name) && RegisteredBackends::Instance().Add(backend)) return {};
  return Error{ErrorCode::kInvalid, "the name \"" + name + "\" is taken: want another one"};
}

}  // namespace

Result<void> AddBackend(const rankrun_backend& backend) {
  if (auto ok = CheckOutsideBackend(backend); !ok) return ok;
  return Register(Complete(backend));
}

Result<void> AddBackend(const rankrun_device_backend& backend) {
  if (auto ok = CheckOutsideDevices(backend); !ok) return ok;
  return Register(backend);
}

std::vector<std::string> RegisteredNames() { return RegisteredBackends::Instance().Names(); }

}  // namespace rankrun::comm
