#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/health/worker_sample.h"
#include "base/clock.h"

// Evidence that a worker works, from its counters and connections. A program without librankrun
// shows nothing else. Pure.
namespace rankrun::agent {

// Whether a worker has worked between two looks, `between` apart. A thread that wakes up to look
// whether it may continue does not work: `calls_peer` says whether the main thread was in a call on
// a socket at both looks, which returns only with data.
bool ShowsWork(const WorkFacts& before, const WorkFacts& now, Duration between, bool calls_peer);

// One end of a connection, at the worker with this rank.
struct ConnectionTime {
  uint64_t id = 0;
  int rank = 0;
  TimePoint received{};  // the latest data
};

// Returns when workers last received data from each other; nothing if they have no connection.
// Data of programs that are no worker of the job, as of one that reads metrics, does not count.
std::optional<TimePoint> LastExchange(std::vector<ConnectionTime> ends);

}  // namespace rankrun::agent
