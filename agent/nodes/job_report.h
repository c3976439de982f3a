#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/result.h"

namespace rankrun::agent {

// Encodes one node's record of a failed attempt for the other nodes. Output is
// trimmed to the part that a report shows. Pure.
std::string EncodeReport(const AttemptRecord& record);
// Errors: kProtocol.
Result<AttemptRecord> DecodeReport(std::string_view bytes);

// Merges the records of all nodes on one attempt. The cause is the worker of
// `cause_rank`, if it is among them. `parts` is not empty. Pure.
AttemptRecord MergeReports(std::vector<AttemptRecord> parts, std::optional<int> cause_rank);

}  // namespace rankrun::agent
