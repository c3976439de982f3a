#include "comm/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace rankrun::comm {
namespace {

// libtorch exports a Gloo of its own, which must not answer for the one that
// the plug-in was built with: DEEPBIND makes the plug-in prefer its own
// dependencies. The sanitizers' interceptors do not survive it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

bool IsName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

std::string LastLoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

Result<const BackendPlugin*> Enter(void* library, const std::string& path) {
  auto* function = reinterpret_cast<BackendPluginFunction*>(dlsym(library, kBackendPluginSymbol));
  if (function == nullptr) {
    return Error{ErrorCode::kSystem, "load " + path + ": " + LastLoaderError()};
  }
  const BackendPlugin* plugin = function();
  if (plugin->abi_version != kBackendAbiVersion) {
    return Error{ErrorCode::kSystem, "load " + path + ": it is of plug-in version " +
                                         std::to_string(plugin->abi_version) + ", want " +
                                         std::to_string(kBackendAbiVersion)};
  }
  return plugin;
}

}  // namespace

Result<const BackendPlugin*> LoadPlugin(const std::string& name,
                                        const std::vector<std::string>& folders) {
  if (!IsName(name)) {
    return Error{ErrorCode::kNotFound, "backend is \"" + name + "\": want letters, digits and _"};
  }
  std::string tried;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/librankrun_" + name + ".so";
    if (void* library = dlopen(path.c_str(), kOpenFlags)) return Enter(library, path);
    tried += "; tried " + path + " (" + LastLoaderError() + ")";
  }
  return Error{ErrorCode::kNotFound, "load backend " + name + ": no plug-in" + tried};
}

std::vector<std::string> PluginFolders() {
  std::vector<std::string> folders;
  // Not in a set-user-id program: it would load what its caller says.
  if (const char* chosen = secure_getenv("RANKRUN_PLUGIN_DIR"); chosen != nullptr && *chosen) {
    folders.emplace_back(chosen);
  }
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&PluginFolders), &self) != 0 && self.dli_fname != nullptr) {
    const std::string path = self.dli_fname;
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    folders.push_back(folder);
    folders.push_back(folder + "/rankrun");
  }
  return folders;
}

}  // namespace rankrun::comm
