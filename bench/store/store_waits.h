#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/store/store_load.h"
#include "bench/store/store_target.h"

namespace rankrun::bench {

struct WaitsOptions {
  size_t keys = 100'000;
  size_t connections = 16;                // each waits for its share of the keys with one WAIT
  std::chrono::duration<double> time{1};  // duration of each of the two loads
};

struct WaitsFigures {
  LoadFigures without;  // one SET and PING at a time, without waits
  LoadFigures with;     // the same with waits for all keys
  double register_ms = 0;
  double release_ms = 0;  // time until all keys are set and all connections released
};

// Measures the cost of pending waits for a request. Errors: those of RunLoad.
Result<WaitsFigures> RunWaits(const Target& target, const WaitsOptions& options);

struct WakeFigures {
  double ms = 0;  // from the SET to the last release
  std::optional<double> server_cpu_us_per_waiter = std::nullopt;  // none without a pid
};

// Measures `waiters` connections that wait for one key, which is then set.
// Errors: those of Peers; kProtocol for a wrong reply.
Result<WakeFigures> RunWake(const Target& target, size_t waiters);

}  // namespace rankrun::bench
