#pragma once

#include <memory>

#include <rankrun/backend.h>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/world/plugin.h"

// Backends that are written outside of rankrun: rankrun/backend.h.
namespace rankrun::comm {

// Fails unless this library can use the backend.
// Errors: kInvalid, "backend is of version 2: want 1".
Result<void> CheckOutsideBackend(const rankrun_backend& backend);

// Returns the struct with null for members that are younger than the backend. Pure.
rankrun_backend Complete(const rankrun_backend& backend);

// Returns the creator of the backend, which must stay valid.
BackendCreator CreatorOf(const rankrun_backend& backend);

// Connects this rank to all others by `backend`. It
// succeeds on all ranks or fails on all, with the reason that was published first.
// Errors: kTimeout, kPeerLost or kSystem with the backend's reason; kSystem for
// connections that the library cannot use; kCancelled with the death message.
Result<std::unique_ptr<Backend>> ConnectOutsideBackend(const rankrun_backend& backend,
                                                       const BackendConfig& config);

}  // namespace rankrun::comm
