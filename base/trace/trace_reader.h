#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/trace/tick_scale.h"
#include "base/trace/trace_format.h"

namespace rankrun {

// An operation in a trace. Times are CLOCK_MONOTONIC of its host, in nanoseconds.
struct TracedOperation {
  uint8_t kind;
  uint8_t dtype;
  uint8_t op;
  bool is_finished;
  bool has_failed;
  int peer;   // global rank of the root or peer; -1: none
  int group;  // index in Trace::groups; -1: none
  int64_t begin;
  int64_t end;      // if it is not finished: the last time in the trace
  uint64_t number;  // in the group's sequence, from 1; 0: has none
  uint64_t count;   // elements
  uint64_t bytes;
  uint64_t tag;
  std::string key;  // of a store, or method of RPC
};

struct TracedGroup {
  std::string name;
  uint64_t key;  // the same on all ranks
  int size;
};

// Content of a trace file.
struct Trace {
  std::string path;
  int rank;
  int attempt;
  int pid;
  std::string host;
  std::string boot;
  std::string run_id;
  ClockReading first;  // before all operations
  ClockReading last;
  int64_t realtime_offset;  // CLOCK_REALTIME minus CLOCK_MONOTONIC, at the first reading
  uint64_t lost;            // operations for which there was no room
  std::vector<TracedGroup> groups;
  std::vector<TracedOperation> operations;  // by their begin

  TickScale scale() const { return {first, last}; }
};

// Reads a trace, of which a process that was killed, or still runs, wrote a part.
// Errors: kInvalid if it is no trace, or damaged; kNotFound if it is absent, or its
// process ended before it had made it; those of SystemError.
// `scale` is that of all traces of the boot; without it, the trace has its own.
Result<Trace> ReadTrace(const std::string& path, const TickScale* scale = nullptr);

// Reads the same without groups and operations.
Result<Trace> ReadTraceOwner(const std::string& path);

}  // namespace rankrun
