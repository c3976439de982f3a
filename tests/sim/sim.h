#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace rankrun::sim {

// What may go wrong in a run.
enum class Faults {
  kNone,
  kFailures,  // workers and agents die, nothing else
  kBlips,     // connections break for less than the node's timeout, nothing else
  kSilence,   // nodes are cut off or stopped for longer than the node's timeout
  kStuck,     // workers fail, and others do not die of SIGKILL when they are stopped
  kAll,
};

// One run: a job on simulated machines. 0: the seed chooses.
struct Options {
  uint64_t seed = 1;
  int nodes = 3;
  int min = 0;
  int max = 0;
  Faults faults = Faults::kAll;
  bool loses_one = false;  // besides: a node's machine, while all run
  bool is_traced = false;  // on standard output
};

struct Result {
  std::string violation = {};  // empty: all invariants held
  uint64_t events = 0;
  int rounds = 0;  // that were granted
  int verdict = -1;
  Duration took{};  // virtual
};

Result Simulate(const Options& options);

std::optional<Faults> FaultsNamed(const std::string& name);  // "blips"

// How to see that run again.
std::string CommandLine(const Options& options);

}  // namespace rankrun::sim
