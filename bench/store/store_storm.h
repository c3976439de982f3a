#pragma once

#include <cstddef>
#include <optional>

#include "bench/store/store_target.h"

namespace rankrun::bench {

struct StormFigures {
  double ms = 0;  // from the first connect to the last release
  std::optional<double> server_cpu_us_per_client = std::nullopt;  // none without a pid
};

// Starts `clients` clients of a job at once. Each connects, greets the server,
// increments a counter, and waits for a key that the last one sets.
// Errors: those of Peers; kProtocol for a wrong reply.
Result<StormFigures> RunStorm(const Target& target, size_t clients);

}  // namespace rankrun::bench
