#pragma once

#include <chrono>

namespace rankrun::comm::stream {

// How a rank waits for its peers: it polls as long as a peer on another
// processor may answer any moment, then it sleeps until data arrives.
struct Patience {
  // Ranks on this host that share its processors poll without spinning.
  int polls;   // before the first yield
  int yields;  // before it sleeps

  // Longest sleep: then the rank looks for deaths, losses and its time-out.
  static constexpr std::chrono::milliseconds kSlice{4};
};

}  // namespace rankrun::comm::stream
