#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

#include "base/private_api.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/stream/connection.h"

// For a protocol between the ranks of a world that is beside its groups.
namespace rankrun::comm {

// Connects the ranks of a world once more. Returns one connection per rank; null for this
// one. All ranks call it. `name`: of the protocol. Errors: as tcp::ConnectAll.
RANKRUN_PRIVATE_API Result<std::vector<std::unique_ptr<stream::Connection>>> ConnectAgain(
    const ProcessGroup& world, const std::string& name, std::chrono::milliseconds timeout);

// Returns the watch that ends the waits of a group. Throws DistError if the group is destroyed.
RANKRUN_PRIVATE_API DeathWatch DeathsOf(const ProcessGroup& group);

}  // namespace rankrun::comm
