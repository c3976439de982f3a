#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "bench/store/store_target.h"

namespace rankrun::bench {

enum class Operation { kGet, kSet, kAdd };

struct LoadOptions {
  Operation operation = Operation::kGet;
  size_t connections = 64;
  size_t value_bytes = 64;
  size_t pipeline = 1;  // requests that each connection sends at once
  std::chrono::duration<double> time{1};
  bool echo = false;  // the server is store_echo
};

struct ServerUse {
  double cpu_us_per_request = 0;
  int64_t before_kib = 0;  // resident memory before the first connection
  int64_t open_kib = 0;    // with all connections open, each having sent one request
  int64_t end_kib = 0;     // after the load, with all connections open
};

struct LoadFigures {
  uint64_t requests = 0;
  double seconds = 0;
  // latency of one send's replies
  double us_p50 = 0, us_p90 = 0, us_p99 = 0, us_p999 = 0, us_max = 0;
  std::optional<ServerUse> server;
};

// Keeps `pipeline` requests in flight on each connection: sends them at once,
// waits for their replies, sends the next. Every reply is checked. SET has no
// reply, so a PING follows the last SET of each send and its reply is awaited;
// only the SETs count. The first part of the time, a fifth but at most half a
// second, is a warm-up and not counted.
// Errors: those of Peers; kProtocol for a wrong reply.
Result<LoadFigures> RunLoad(const Target& target, const LoadOptions& options);

}  // namespace rankrun::bench
