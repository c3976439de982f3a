#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"
#include "base/result.h"

namespace rankrun::agent {

// Limits of one node's report, and of the merged one, which each node gets.
constexpr size_t kMaxPartBytes = 64 * 1024;
constexpr size_t kMaxReportBytes = 64 * 1024;

// Encodes the record of a failed attempt for the other nodes, in `max_bytes` at
// most. Output is trimmed to the part that a report shows; then the least
// important workers are counted only. Pure.
std::string EncodeReport(const AttemptRecord& record, size_t max_bytes);
// Errors: kProtocol.
Result<AttemptRecord> DecodeReport(std::string_view bytes);

// Merges the records of all nodes on one attempt and chooses the cause among all their
// workers; among equals, it is the worker of `first_rank`, whose failure was known first.
// `parts` is not empty. Pure.
AttemptRecord MergeReports(std::vector<AttemptRecord> parts, std::optional<int> first_rank);

}  // namespace rankrun::agent
