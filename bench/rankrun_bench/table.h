#pragma once

#include <string>

#include "bench/rankrun_bench/measurement.h"
#include "bench/rankrun_bench/options.h"

// What rankrun-bench prints: columns as nccl-tests has them, or JSON.
namespace rankrun::bench {

// What is the same on all lines of one collective.
struct Heading {
  Collective collective;
  int ranks = 0;
  std::string backend;
};

std::string TableHead(const Heading& heading, const Options& options);
std::string TableLine(const Heading& heading, const Options& options, const Figures& figures);
// Under the lines of one collective.
std::string TableFoot(int64_t wrong, double mean_bus_bandwidth);

// One object, with a line feed.
std::string JsonLine(const Heading& heading, const Options& options, const Figures& figures);

}  // namespace rankrun::bench
