#include "comm/world/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "comm/world/outside_backend.h"
#include "comm/world/outside_devices.h"

namespace rankrun::comm {
namespace {

// libtorch exports symbols of its own Gloo. DEEPBIND makes the plug-in prefer
// the Gloo that it was built with. The interceptors of the sanitizers do not
// work with it.
#ifdef RANKRUN_SANITIZED
constexpr int kGlooFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kGlooFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

// Functions of plug-ins that were written outside of rankrun: rankrun/backend.h,
// rankrun/device_backend.h.
constexpr char kOutsideEntry[] = "rankrun_backend_entry";
constexpr char kOutsideDevicesEntry[] = "rankrun_device_backend_entry";

std::string LastLoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

Error CannotLoad(const std::string& path, const std::string& why) {
  return {ErrorCode::kSystem, "load " + path + ": " + why};
}

struct Library {
  void* handle;
  std::string path;
};

// Returns the functions of a plug-in that is built with this library; null: it is
// none.
Result<const BackendPlugin*> FindOwn(const Library& library) {
  void* entry = dlsym(library.handle, kBackendPluginSymbol);
  if (entry == nullptr) return nullptr;
  const BackendPlugin* plugin = reinterpret_cast<BackendPluginFunction*>(entry)();
  if (plugin->abi_version == kBackendAbiVersion) return plugin;
  return CannotLoad(library.path, "it is of plug-in version " +
                                      std::to_string(plugin->abi_version) + ", want " +
                                      std::to_string(kBackendAbiVersion));
}

// Returns the description in a plug-in that was written outside of rankrun; null: it has
// no such function. `check`: that of the description.
template <typename Description>
Result<const Description*> FindOutside(const Library& library, const std::string& name,
                                       const char* function,
                                       Result<void> (*check)(const Description&)) {
  void* entry = dlsym(library.handle, function);
  if (entry == nullptr) return nullptr;
  const Description* backend = reinterpret_cast<const Description* (*)()>(entry)();
  if (backend == nullptr) {
    return CannotLoad(library.path, std::string(function) + " returned NULL");
  }
  if (auto ok = check(*backend); !ok) return CannotLoad(library.path, ok.error().message);
  if (backend->name == name) return backend;
  return CannotLoad(library.path, "it is the backend \"" + std::string(backend->name) +
                                      "\": want \"" + name + "\", as the file is named");
}

Error NoEntry(const std::string& path, const char* function) {
  return CannotLoad(path, "it has no function " + std::string(function));
}

bool Has(const Library& library, const char* function) {
  return dlsym(library.handle, function) != nullptr;
}

Result<BackendCreator> Enter(const Library& library, const std::string& name) {
  auto outside = FindOutside(library, name, kOutsideEntry, &CheckOutsideBackend);
  if (!outside) return std::move(outside).error();
  if (*outside != nullptr) return CreatorOf(**outside);
  auto own = FindOwn(library);
  if (!own) return std::move(own).error();
  if (*own != nullptr && (*own)->create != nullptr) return BackendCreator((*own)->create);
  if (*own != nullptr || Has(library, kOutsideDevicesEntry)) return WrongMemory(name, "cuda");
  return NoEntry(library.path, kOutsideEntry);
}

Result<DeviceBackendCreator> EnterForDevices(const Library& library, const std::string& name) {
  auto outside = FindOutside(library, name, kOutsideDevicesEntry, &CheckOutsideDevices);
  if (!outside) return std::move(outside).error();
  if (*outside != nullptr) return CreatorOf(**outside);
  auto own = FindOwn(library);
  if (!own) return std::move(own).error();
  if (*own != nullptr && (*own)->create_for_devices != nullptr) {
    if (auto ok = (*own)->find_devices(); !ok) return Error(ok.error()).In("backend " + name);
    return DeviceBackendCreator((*own)->create_for_devices);
  }
  if (*own != nullptr || Has(library, kOutsideEntry)) return WrongMemory(name, "cpu");
  return NoEntry(library.path, kOutsideDevicesEntry);
}

// Names of backends for each memory.
constexpr char kForCpu[] = "auto, shm, tcp, hierarchical, gloo";
constexpr char kForGpus[] = "nccl";

// Returns the library of a backend that PyTorch has and rankrun, or this build of it,
// lacks; empty: PyTorch has none of this name.
std::string LibraryOf(const std::string& name) {
  if (name == "nccl") return "NCCL, for NVIDIA GPUs";
  if (name == "xccl") return "oneCCL, for Intel GPUs";
  if (name == "ucc") return "UCC";
  if (name == "mpi") return "MPI";
  return "";
}

// `ours`: the names that would be right.
Error NoPlugin(const std::string& name, const std::string& file, const std::string& ours,
               const std::vector<std::string>& folders) {
  std::string places;
  for (const std::string& folder : folders) places += (places.empty() ? "" : " or ") + folder;
  if (name == kGlooBackend) {
    return Error{ErrorCode::kNotFound, "load backend gloo: there is no " + file + " in " + places};
  }
  const std::string of_pytorch = LibraryOf(name);
  if (!of_pytorch.empty()) {
    return Error{ErrorCode::kInvalid, "backend is \"" + name + "\": this rankrun has none with " +
                                          of_pytorch + ", and there is no plug-in " + file +
                                          " in " + places + ": want " + ours +
                                          " or a registered one"};
  }
  return Error{ErrorCode::kInvalid, "backend is \"" + name + "\": want " + ours +
                                        ", a registered one, or a plug-in " + file + " in " +
                                        places};
}

}  // namespace

std::string BackendName(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool IsBackendName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

namespace {

// Loads the plug-in of a backend from one of the folders.
Result<Library> Open(const std::string& name, const std::string& ours,
                     const std::vector<std::string>& folders) {
  if (!IsBackendName(name)) {
    return Error{ErrorCode::kInvalid,
                 "backend is \"" + name +
                     "\": want one name of small letters, digits and _, such as "
                     "auto, shm, tcp or gloo"};
  }
  std::string file = "librankrun_" + name + ".so";
  for (const std::string& folder : folders) {
    std::string path = folder + "/" + file;
    int flags = name == kGlooBackend ? kGlooFlags : kFlags;
    if (void* handle = dlopen(path.c_str(), flags)) return Library{handle, path};
    // The loader's message names the missing file, which may be a dependency.
    std::string words = LastLoaderError();
    if (access(path.c_str(), F_OK) == 0) {
      return Error{ErrorCode::kNotFound, "load backend " + name + ": " + words};
    }
  }
  return NoPlugin(name, file, ours, folders);
}

}  // namespace

Result<BackendCreator> LoadPlugin(const std::string& name,
                                  const std::vector<std::string>& folders) {
  auto library = Open(name, kForCpu, folders);
  if (!library) return std::move(library).error();
  return Enter(*library, name);
}

Result<DeviceBackendCreator> LoadDevicePlugin(const std::string& name,
                                              const std::vector<std::string>& folders) {
  auto library = Open(name, kForGpus, folders);
  if (!library) return std::move(library).error();
  return EnterForDevices(*library, name);
}

Result<const DeviceMemory*> LoadDeviceMemory(const std::vector<std::string>& folders) {
  auto library = Open(kNcclBackend, kForGpus, folders);
  if (!library) return std::move(library).error();
  auto own = FindOwn(*library);
  if (!own) return std::move(own).error();
  if (*own == nullptr || (*own)->device_memory == nullptr) {
    return NoEntry(library->path, kBackendPluginSymbol);
  }
  if (auto ok = (*own)->find_devices(); !ok) return ok.error();
  return &(*own)->device_memory();
}

Error WrongMemory(const std::string& name, const std::string& memory) {
  const std::string other = memory == "cpu" ? "cuda" : "cpu";
  return {ErrorCode::kInvalid, "the backend " + name + " is for " + memory + ": want " + memory +
                                   ":" + name + " instead of " + other + ":" + name};
}

std::vector<std::string> PluginFolders() {
  std::vector<std::string> folders;
  // secure_getenv: the caller of a set-user-id program must not choose
  // libraries.
  if (const char* chosen = secure_getenv("RANKRUN_PLUGIN_DIR"); chosen != nullptr && *chosen) {
    folders.emplace_back(chosen);
  }
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&PluginFolders), &self) != 0 && self.dli_fname != nullptr) {
    std::string path = self.dli_fname;
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    folders.push_back(folder);
    folders.push_back(folder + "/rankrun");
  }
  return folders;
}

}  // namespace rankrun::comm
