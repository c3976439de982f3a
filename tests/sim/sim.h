#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace rankrun::sim {

// Kinds of faults in a run.
enum class Faults {
  kNone,
  kFailures,  // only: workers and agents die
  kBlips,     // only: connections break for less than the node timeout
  kSilence,   // nodes are cut off or stopped for longer than the node timeout
  kStuck,     // workers fail, and other workers survive SIGKILL for a while
  kSick,      // the workers of one node fail each time, and there is a spare
  kAll,
};

// One run: a job on simulated machines. Where 0 is allowed, the seed chooses.
struct Options {
  uint64_t seed = 1;
  int nodes = 3;
  int min = 0;
  int max = 0;
  Faults faults = Faults::kAll;
  bool loses_one = false;  // also lose one machine while all workers run
  bool is_traced = false;  // print every event to standard output
};

struct Result {
  std::string violation = {};  // empty: all invariants held
  uint64_t events = 0;
  int rounds = 0;  // granted ones
  int verdict = -1;
  Duration took{};  // virtual time
};

Result Simulate(const Options& options);

// Returns the kind for a name such as "blips".
std::optional<Faults> FaultsNamed(const std::string& name);
std::string NameOf(Faults faults);

// Returns the command that repeats the run and prints its events.
std::string CommandLine(const Options& options);

}  // namespace rankrun::sim
