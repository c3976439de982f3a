#include "agent/machine/topology_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "agent/machine/topology_plugin.h"

namespace rankrun::agent {
namespace {

constexpr const char* kFile = "/librankrun_topology.so";

std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

struct Collected {
  Topology topology;
  std::map<int, size_t> index;  // of a core in the topology, by the plug-in's number
};

void AddCpu(void* context, const TopologyCpu* cpu) {
  auto& collected = *static_cast<Collected*>(context);
  std::vector<Core>& cores = collected.topology.cores;
  auto [found, is_new] = collected.index.try_emplace(cpu->core, cores.size());
  if (is_new) {
    cores.push_back({.cpus = {},
                     .numa_node = cpu->numa_node,
                     .package = cpu->package,
                     .last_cache = cpu->last_cache});
  }
  Cpus& cpus = cores[found->second].cpus;
  cpus.insert(std::ranges::upper_bound(cpus, cpu->cpu), cpu->cpu);
}

Result<Topology> Ask(void* library, const std::string& path) {
  auto* function = reinterpret_cast<TopologyPluginFunction*>(dlsym(library, kTopologyPluginSymbol));
  const TopologyPlugin* plugin = function == nullptr ? nullptr : function();
  if (plugin == nullptr || plugin->abi_version != kTopologyAbiVersion) {
    return Error{ErrorCode::kInvalid, path + " is of another version of rankrun"};
  }
  Collected collected;
  if (int failure = plugin->load(&collected, AddCpu); failure != 0) {
    return SystemError("hwloc", failure);
  }
  return std::move(collected.topology);
}

}  // namespace

Result<Topology> LoadTopology(const std::vector<std::string>& folders) {
  std::string tried;
  for (const std::string& folder : folders) {
    std::string path = folder + kFile;
    if (access(path.c_str(), F_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    // Never unloaded, because hwloc's own plug-ins do not survive that.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return Ask(library, path);
    return Error{ErrorCode::kInvalid,
                 "load " + path + ": " + LoaderError() + " (is the package libhwloc15 installed?)"};
  }
  return Error{ErrorCode::kInvalid, "there is no librankrun_topology.so; tried " + tried};
}

std::vector<std::string> TopologyPluginFolders() {
  std::vector<std::string> folders;
  if (const char* chosen = secure_getenv("RANKRUN_PLUGIN_DIR"); chosen != nullptr && *chosen) {
    folders.emplace_back(chosen);
  }
  std::error_code failure;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return folders;
  std::filesystem::path prefix = program.parent_path().parent_path();
  folders.push_back(prefix / "lib");  // of a build folder
  folders.push_back(prefix / "libexec" / "rankrun");
  return folders;
}

}  // namespace rankrun::agent
