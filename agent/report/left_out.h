#pragma once

#include <span>
#include <string>
#include <vector>

#include "agent/report/attempt_record.h"

// Workers that a report of bounded size counts instead of describing each. Pure.
namespace rankrun::agent {

// Adds these workers to `all`, as ranges of ranks for each way to end. The size of `all`
// has a limit: later ways to end are counted together, and later ranges are only counted.
void LeaveOut(std::span<const WorkerRecord> workers, std::vector<LeftOut>& all);

// Adds those that a part of the report has left out.
void LeaveOut(const std::vector<LeftOut>& part, std::vector<LeftOut>& all);

// Returns "ranks 16-799", "ranks 3, 7 and 210 others" or "rank 9".
std::string RanksOf(const LeftOut& left_out);

}  // namespace rankrun::agent
