#pragma once

#include <string>

#include "bench/rankrun_bench/measurement.h"
#include "bench/rankrun_bench/options.h"

// Output of rankrun-bench: columns like those of nccl-tests, or JSON.
namespace rankrun::bench {

// Values that are the same on all lines of one collective.
struct Heading {
  Collective collective;
  int ranks = 0;
  std::string backend;
};

std::string TableHead(const Heading& heading, const Options& options);
std::string TableLine(const Heading& heading, const Options& options, const Figures& figures);
// Lines below those of one collective.
std::string TableFoot(int64_t wrong, double mean_bus_bandwidth);

// Returns one JSON object and a line feed.
std::string JsonLine(const Heading& heading, const Options& options, const Figures& figures);

}  // namespace rankrun::bench
