#pragma once

#include <memory>

#include <rankrun/device_backend.h>

#include "base/result.h"
#include "comm/core/device_backend.h"
#include "comm/world/plugin.h"

// Backends for GPU memory that are written outside of rankrun: rankrun/device_backend.h.
namespace rankrun::comm {

// Fails unless this library can use the backend.
// Errors: kInvalid, "the backend is of version 2: want 1".
Result<void> CheckOutsideDevices(const rankrun_device_backend& backend);

// Returns the creator of the backend, which must stay valid, after it has found a GPU.
// Error: kInvalid, with the backend's reason.
Result<DeviceBackendCreator> CreatorOf(const rankrun_device_backend& backend);

// Makes the backend of one group. `backend` must stay valid. Errors: as DeviceBackend.
Result<std::unique_ptr<DeviceBackend>> MakeOutsideDevices(const rankrun_device_backend& backend,
                                                          const DeviceBackendConfig& config);

}  // namespace rankrun::comm
