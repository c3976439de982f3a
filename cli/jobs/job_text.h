#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/inspect/node_status.h"

namespace rankrun::cli {

// The output of `rankctl ps`, `status` and `why` for people. Pure. Lines end in a newline.

// Returns a table of jobs, each by the status of one of its agents.
std::string JobsText(const std::vector<agent::NodeStatus>& jobs);

// CPU seconds of each worker, by its pid and node, and when they were read.
struct CpuTimes {
  std::map<std::pair<std::string, pid_t>, double> seconds;
  double at = 0;  // of any clock, in seconds
};
CpuTimes CpuTimesOf(const std::vector<agent::NodeStatus>& nodes, double now);

// Returns a table of all workers in at most `width` columns, with a line on the job before it.
// The share of CPU is that since `before`, or since the attempt began if `before` is empty.
std::string StatusText(std::vector<agent::NodeStatus> nodes, const CpuTimes& before, double now,
                       size_t width);

// Returns what each rank does and for which one it waits, from two looks that are `apart` seconds
// apart. `rank`: this one only; -1: all.
std::string WhyText(const std::vector<agent::NodeStatus>& first,
                    const std::vector<agent::NodeStatus>& second, double apart, int rank);

// Whether two looks show that a rank waits for others, by its status page or at the store.
bool ShowsWaits(const std::vector<agent::NodeStatus>& first,
                const std::vector<agent::NodeStatus>& second, double apart);

// Returns the ranks that run, if none of all shows an operation of librankrun; else none.
std::vector<int> RanksThatShowNothing(const std::vector<agent::NodeStatus>& nodes);

// Returns "850 ms", "12 s", "3 min", "5 h", "2 d".
std::string ShortTime(double seconds);
// Returns "12 K", "120 M", "1.5 G".
std::string ShortBytes(uint64_t bytes);

}  // namespace rankrun::cli
