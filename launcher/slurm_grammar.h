#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What SLURM writes into its variables. Pure.
namespace rankrun::launcher {

// The names in a list of nodes, in its order: "n[01-03,7],m5", "r[1-2]n[1-4]-ib".
// Errors: kInvalid, what is wrong with it; more than 100,000 names too.
Result<std::vector<std::string>> ParseNodeList(std::string_view text);

// One number per node: "2(x3),1" is 2, 2, 2, 1. Nothing for what is no such list.
std::optional<std::vector<int>> ParseCounts(std::string_view text);

// How many GPUs "4", "a100:4", "gpu:a100:2,gpu:v100:1" or "gpu:4(S:0-1)" are.
// Nothing for what is no such list.
std::optional<int> ParseGpuCount(std::string_view text);

}  // namespace rankrun::launcher
