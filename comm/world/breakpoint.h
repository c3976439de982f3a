#pragma once

#include <map>
#include <string>

namespace rankrun::comm {

struct BreakpointCall {
  int global_rank;
  int skip;
  std::string place;  // of the call: "train.cc:42"
};

// Counters of Breakpoint in a world.
struct BreakpointCounts {
  std::map<std::string, int> skipped;  // calls, by their place and arguments
  int holds = 0;                       // calls that were not skipped
};

}  // namespace rankrun::comm
