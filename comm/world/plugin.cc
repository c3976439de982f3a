#include "comm/world/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "comm/world/outside_backend.h"

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

// Function of a plug-in that was written outside of rankrun: rankrun/backend.h.
constexpr char kOutsideEntry[] = "rankrun_backend_entry";

std::string LastLoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

Error CannotLoad(const std::string& path, const std::string& why) {
  return {ErrorCode::kSystem, "load " + path + ": " + why};
}

// Enters a plug-in that is built with this library.
Result<BackendCreator> EnterOwn(const BackendPlugin& plugin, const std::string& path) {
  if (plugin.abi_version == kBackendAbiVersion) return BackendCreator(plugin.create);
  return CannotLoad(path, "it is of plug-in version " + std::to_string(plugin.abi_version) +
                              ", want " + std::to_string(kBackendAbiVersion));
}

// Enters a plug-in that was written outside of rankrun.
Result<BackendCreator> EnterOutside(const rankrun_backend* backend, const std::string& path,
                                    const std::string& name) {
  if (backend == nullptr) return CannotLoad(path, std::string(kOutsideEntry) + " returned NULL");
  if (auto ok = CheckOutsideBackend(*backend); !ok) return CannotLoad(path, ok.error().message);
  if (backend->name != name) {
    return CannotLoad(path, "it is the backend \"" + std::string(backend->name) + "\": want \"" +
                                name + "\", as the file is named");
  }
  return BackendCreator(
      [backend](const BackendConfig& config) { return ConnectOutsideBackend(*backend, config); });
}

Result<BackendCreator> Enter(void* library, const std::string& path, const std::string& name) {
  if (void* entry = dlsym(library, kOutsideEntry)) {
    return EnterOutside(reinterpret_cast<const rankrun_backend* (*)()>(entry)(), path, name);
  }
  if (void* entry = dlsym(library, kBackendPluginSymbol)) {
    return EnterOwn(*reinterpret_cast<BackendPluginFunction*>(entry)(), path);
  }
  return CannotLoad(path, "it has no function " + std::string(kOutsideEntry));
}

constexpr char kOurs[] = "auto, shm, tcp, hierarchical, gloo";

// Returns the library of a backend that PyTorch has and rankrun lacks; empty: PyTorch
// has none of this name.
std::string LibraryOf(const std::string& name) {
  if (name == "nccl") return "NCCL, for NVIDIA GPUs";
  if (name == "xccl") return "oneCCL, for Intel GPUs";
  if (name == "ucc") return "UCC";
  if (name == "mpi") return "MPI";
  return "";
}

Error NoPlugin(const std::string& name, const std::string& file,
               const std::vector<std::string>& folders) {
  std::string places;
  for (const std::string& folder : folders) places += (places.empty() ? "" : " or ") + folder;
  if (name == kGlooBackend) {
    return Error{ErrorCode::kNotFound, "load backend gloo: there is no " + file + " in " + places};
  }
  const std::string of_pytorch = LibraryOf(name);
  if (!of_pytorch.empty()) {
    return Error{ErrorCode::kInvalid, "backend is \"" + name + "\": rankrun has none with " +
                                          of_pytorch + ", and there is no plug-in " + file +
                                          " in " + places + ": want " + kOurs +
                                          " or a registered one"};
  }
  return Error{ErrorCode::kInvalid, "backend is \"" + name + "\": want " + kOurs +
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

Result<BackendCreator> LoadPlugin(const std::string& name,
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
    if (void* library = dlopen(path.c_str(), flags)) return Enter(library, path, name);
    // The loader's message names the missing file, which may be a dependency.
    std::string words = LastLoaderError();
    if (access(path.c_str(), F_OK) == 0) {
      return Error{ErrorCode::kNotFound, "load backend " + name + ": " + words};
    }
  }
  return NoPlugin(name, file, folders);
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
