#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Values of SLURM's variables. Pure.
namespace rankrun::launcher {

// Returns the names in a list of nodes, in its order: "n[01-03,7],m5",
// "r[1-2]n[1-4]-ib".
// Errors: kInvalid, also for more than 100,000 names.
Result<std::vector<std::string>> ParseNodeList(std::string_view text);

// Returns one number per node: "2(x3),1" is 2, 2, 2, 1. Returns nothing for any
// other text.
std::optional<std::vector<int>> ParseCounts(std::string_view text);

// Returns the number of GPUs in "4", "a100:4", "gpu:a100:2,gpu:v100:1" or
// "gpu:4(S:0-1)", or nothing for any other text.
std::optional<int> ParseGpuCount(std::string_view text);

}  // namespace rankrun::launcher
