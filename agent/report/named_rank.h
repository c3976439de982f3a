#pragma once

#include <optional>
#include <string_view>

namespace rankrun::agent {

// Returns the rank that an error of librankrun, PyTorch or an agent names as its reason: one
// that was lost, ended, left its group, or did not come to Init, a collective or a monitored
// barrier; or the only one whose call differs from that of several others. Pure.
std::optional<int> NamedRankIn(std::string_view error);

}  // namespace rankrun::agent
