#pragma once

#include <memory>

#include <rankrun/backend.h>

#include "base/result.h"
#include "comm/stream/own_collectives.h"

namespace rankrun::comm {

// Returns the collectives that an outside backend carries out itself in `group`; null: it has none.
// Errors: kTimeout, kPeerLost or kSystem, with the backend's reason.
Result<std::unique_ptr<stream::OwnCollectives>> OpenOwnCollectives(
    std::shared_ptr<const rankrun_backend> backend, const rankrun_backend_group* group);

}  // namespace rankrun::comm
