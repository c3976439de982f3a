#pragma once

#include <string>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/member_events.h"
#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// Merges the records of all nodes on one attempt, and adds what the coordinator decided after
// it. `parts` is not empty. Pure.
AttemptRecord ReportOnRound(std::vector<AttemptRecord> parts, const RoundOutcome& outcome);

// Returns the name of the node whose worker is the cause; empty: the cause is uncertain, or it is
// no worker. Pure.
std::string NodeOfCause(const AttemptRecord& record);

// Returns the report on the last attempt of a node that has not got the merged one, from the
// node's own part. `end`: of the node. `told_failure`: elsewhere, as the coordinator has
// told it; empty: none. Pure.
AttemptRecord ReportOnOwnPart(AttemptRecord part, const EndNode& end,
                              const std::string& told_failure);

}  // namespace rankrun::agent
