#pragma once

#include <string>
#include <vector>

#include <rankrun/backend.h>
#include <rankrun/device_backend.h>

#include "base/result.h"
#include "comm/world/plugin.h"

namespace rankrun::comm {

// Names that have a meaning without a plug-in.
inline constexpr char kAutoBackend[] = "auto";
inline constexpr char kShmBackend[] = "shm";
inline constexpr char kTcpBackend[] = "tcp";
inline constexpr char kHierarchicalBackend[] = "hierarchical";

// Returns the creator of a backend: of this library, registered by the program,
// or in a plug-in.
// Errors: as LoadPlugin.
Result<BackendCreator> FindBackend(const std::string& name,
                                   const std::vector<std::string>& plugin_folders);

// Returns the creator of a backend for memory of GPUs. Errors: as FindBackend; kInvalid
// for one that is for CPU memory.
Result<DeviceBackendCreator> FindDeviceBackend(const std::string& name,
                                               const std::vector<std::string>& plugin_folders);

// Make a backend of the program known to FindBackend or FindDeviceBackend, for good.
// Copy it.
// Errors: as CheckOutsideBackend; kInvalid for a name that is taken or is none.
// Thread: any.
Result<void> AddBackend(const rankrun_backend& backend);
Result<void> AddBackend(const rankrun_device_backend& backend);

// Returns the names of backends that the program has added.
// Thread: any.
std::vector<std::string> RegisteredNames();

}  // namespace rankrun::comm
