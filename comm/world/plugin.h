#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/private_api.h"
#include "base/result.h"
#include "comm/core/backend_plugin.h"

namespace rankrun::comm {

// Backends that are always plug-ins.
inline constexpr char kGlooBackend[] = "gloo";
inline constexpr char kNcclBackend[] = "nccl";

// Connects this rank to all others.
using BackendCreator = std::function<Result<std::unique_ptr<Backend>>(const BackendConfig&)>;
// Makes the backend for memory of GPUs, without connecting it.
using DeviceBackendCreator =
    std::function<Result<std::unique_ptr<DeviceBackend>>(const DeviceBackendConfig&)>;

// Returns `text` in lower case: names of backends ignore case.
std::string BackendName(std::string text);

// Returns whether `text` can be the name of a backend: small letters, digits, _.
bool IsBackendName(std::string_view text);

// Loads librankrun_<name>.so from the first of `folders` that contains it. If
// that file cannot be loaded, later folders are not tried, because their file
// may be another version. It stays loaded until the process ends, because
// backends have threads and thread-local data.
// Errors: kInvalid, no folder has it, so the name is wrong; kNotFound, it
// cannot be loaded (with the loader's message), or no folder has "gloo";
// kSystem, it is no plug-in that this library can use.
Result<BackendCreator> LoadPlugin(const std::string& name, const std::vector<std::string>& folders);
// As LoadPlugin, for a backend for memory of GPUs.
Result<DeviceBackendCreator> LoadDevicePlugin(const std::string& name,
                                              const std::vector<std::string>& folders);

// Loads the plug-in for GPUs and returns its functions for their memory.
// Errors: as LoadPlugin; kInvalid, this process has no GPU.
RANKRUN_PRIVATE_API Result<const DeviceMemory*> LoadDeviceMemory(
    const std::vector<std::string>& folders);

// Returns the error for a backend in the wrong place of a map of devices. `memory`: of
// the backend, "cpu" or "cuda".
Error WrongMemory(const std::string& name, const std::string& memory);

// Returns the folders of plug-ins: $RANKRUN_PLUGIN_DIR if it is set, the folder
// of this library, and rankrun/ in it.
RANKRUN_PRIVATE_API std::vector<std::string> PluginFolders();

}  // namespace rankrun::comm
