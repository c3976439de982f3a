#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/trace/trace_reader.h"

namespace rankrun::cli {

// Returns time - begin, or the nearest number.
int64_t TimeSince(int64_t begin, int64_t time);

// Returns the id of the boot, or the name of the host if that is not known.
std::string BootOf(const Trace& trace);

// Aligns the clocks of the hosts of a job, by its collectives. A rank that leaves an
// AllReduce, AllGather, ReduceScatter or Barrier does so after every rank has entered it;
// one that leaves an AllToAll need not wait for ranks that send it nothing. So each call bounds the
// difference between two hosts' clocks from both sides. The estimate is the middle between the
// tightest bounds within a second of trace, and between two such spans a line, since clocks drift;
// the error is at most half of the distance of the bounds, plus the drift in a second. Processes of
// one boot have the same clock. Hosts without such a call with the reference host keep the
// difference of their system clocks.
class TraceClocks {
 public:
  // Adds the calls of a trace. The first trace is of the reference host.
  void Add(const Trace& trace);
  // Computes the differences; no Add may follow.
  void Align();

  // Returns the time on the clock of the reference host, in nanoseconds.
  int64_t Aligned(const Trace& trace, int64_t monotonic) const;

  struct Host {
    std::string name;
    int64_t realtime_offset;            // CLOCK_REALTIME minus CLOCK_MONOTONIC
    std::optional<int64_t> error = {};  // nanoseconds; none: by the system clocks
  };
  const std::vector<Host>& hosts() const { return hosts_; }  // the first is the reference

 private:
  // Times of one host's ranks in a call.
  struct Visit {
    int64_t last_begin = INT64_MIN;
    int64_t first_end = INT64_MAX;
  };
  // Attempt, group, how many groups of this key there were before, kind, number.
  using CallKey = std::tuple<int, uint64_t, int, uint8_t, uint64_t>;
  struct Bounds {
    int64_t lower = INT64_MIN;
    int64_t upper = INT64_MAX;
    int64_t at = 0;  // a time of the host between the calls of both bounds
    int64_t middle() const { return lower + (upper - lower) / 2; }
    int64_t error() const { return upper > lower ? (upper - lower) / 2 : (lower - upper) / 2; }
  };

  // Times of a host's operations.
  struct Range {
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
  };

  size_t HostOf(const Trace& trace) const;
  void AlignHost(size_t host);

  std::map<std::string, size_t> indices_;  // by boot
  std::vector<Host> hosts_;
  std::vector<Range> ranges_;  // by host
  std::map<CallKey, std::map<size_t, Visit>> calls_;
  std::vector<std::vector<Bounds>> spans_;  // by host, in the order of their time
};

}  // namespace rankrun::cli
