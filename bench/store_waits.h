#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/store_load.h"
#include "bench/store_target.h"

namespace rankrun::bench {

struct WaitsOptions {
  size_t keys = 100'000;
  size_t connections = 16;                // each waits for its part of the keys, by one WAIT
  std::chrono::duration<double> time{1};  // of each of the two loads
};

struct WaitsFigures {
  LoadFigures without;  // a SET and PING at a time, nobody waiting
  LoadFigures with;     // the same with all keys waited for
  double register_ms = 0;
  double release_ms = 0;  // all keys set, all connections told
};

// What waits for other keys cost a request. Errors: those of RunLoad.
Result<WaitsFigures> RunWaits(const Target& target, const WaitsOptions& options);

struct WakeFigures {
  double ms = 0;  // from the SET to the last release
  std::optional<double> server_cpu_us_per_waiter = std::nullopt;  // none without a pid
};

// `waiters` connections wait for one key, which then is set. Errors: those of
// Peers; kProtocol for a wrong reply.
Result<WakeFigures> RunWake(const Target& target, size_t waiters);

}  // namespace rankrun::bench
