#pragma once

#include <cstddef>
#include <string>

#include "agent/coordination/hello.h"

namespace rankrun::agent {

constexpr size_t kMaxNameBytes = 256;  // of a node

// Returns the reason to refuse a node for the values in its hello; empty: none. Members know the
// job secret, but one of them may be broken or hostile. `known_round`: the highest of the job.
// Pure.
std::string ProblemOf(const Hello& hello, int min_nodes, int max_nodes, int known_round);

}  // namespace rankrun::agent
