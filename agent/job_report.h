#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/attempt_record.h"
#include "base/result.h"

namespace rankrun::agent {

// A failed attempt as one node saw it, for the others: with what of the last
// words a report shows. Pure.
std::string EncodeReport(const AttemptRecord& record);
// Errors: kProtocol.
Result<AttemptRecord> DecodeReport(std::string_view bytes);

// All nodes' records of one attempt as one, its cause the worker of
// `cause_rank`, if that is there. `parts` is not empty. Pure.
AttemptRecord MergeReports(std::vector<AttemptRecord> parts, std::optional<int> cause_rank);

}  // namespace rankrun::agent
