#pragma once

#include <cstddef>
#include <optional>

#include "bench/store_target.h"

namespace rankrun::bench {

struct StormFigures {
  double ms = 0;  // from the first connect to the last release
  std::optional<double> server_cpu_us_per_client = std::nullopt;  // none without a pid
};

// `clients` clients begin a job, all at once: each connects, introduces itself,
// counts itself in, and waits until the last one that counted has set a key.
// Errors: those of Peers; kProtocol for a wrong reply.
Result<StormFigures> RunStorm(const Target& target, size_t clients);

}  // namespace rankrun::bench
