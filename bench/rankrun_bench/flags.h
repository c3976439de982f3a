#pragma once

#include <string>

#include "launcher/flags/flag_table.h"

namespace rankrun::bench {

// Returns the flags of rankrun-bench.
launcher::FlagTable BenchFlags();

// Returns the generated part of rankrun-bench(1). Pure.
std::string BenchManPart();

}  // namespace rankrun::bench
