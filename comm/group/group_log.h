#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/operation.h"
#include "comm/group/group_identity.h"

namespace rankrun::comm {

// Lines of the log about a group and its collectives; docs/comm.md has their levels.
// Each begins with the group and this rank.

void LogMade(const GroupIdentity& identity, Duration took);
void LogDestroyed(const GroupIdentity& identity, uint64_t collectives);

// For callers that have checked LogsCalls(), because these lines need the time:
void LogBegin(const Operation& operation, const GroupIdentity& identity);
// Logs the end of a collective that is the group's first one, or slow.
void LogEnd(const Operation& operation, const GroupIdentity& identity, TimePoint since);
// Runs a collective on CPU memory between both, without LogEnd after an error. On GPU
// memory `run` only compares it.
Result<void> RunLogged(const Operation& operation, const GroupIdentity& identity,
                       const std::function<Result<void>()>& run);

}  // namespace rankrun::comm
