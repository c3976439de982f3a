#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/core/device_backend.h"
#include "comm/core/device_memory.h"

namespace rankrun::comm {

// Interface that librankrun_<name>.so exports. The library and its plug-ins are
// built together; the version rejects a plug-in from another build.
inline constexpr uint32_t kBackendAbiVersion = 8;
inline constexpr char kBackendPluginSymbol[] = "rankrun_backend_plugin";

// A backend for CPU memory has `create`, one for memory of devices the others; the
// rest is null.
struct BackendPlugin {
  uint32_t abi_version;
  // Connects to all other ranks, which must call it, too.
  // Errors: as Backend, and kProtocol for an error of the store.
  Result<std::unique_ptr<Backend>> (*create)(const BackendConfig& config);
  // Error: kInvalid, this process has no such device.
  Result<void> (*find_devices)();
  // Makes a backend after find_devices. Connects to no rank.
  Result<std::unique_ptr<DeviceBackend>> (*create_for_devices)(const DeviceBackendConfig& config);
  const DeviceMemory& (*device_memory)();
};
using BackendPluginFunction = const BackendPlugin*();

}  // namespace rankrun::comm
