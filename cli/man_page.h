#pragma once

#include <string>

namespace rankrun::cli {

// Returns the generated part of rankctl(1): the sections COMMANDS and OPTIONS.
// Pure.
std::string RankctlManPart();

}  // namespace rankrun::cli
