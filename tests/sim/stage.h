#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "agent/coordinator_events.h"
#include "tests/sim/dice.h"
#include "tests/sim/sim.h"
#include "tests/sim/timeline.h"

namespace rankrun::sim {

// What is fixed for a run.
struct Plan {
  agent::CoordinatorPolicy policy;
  milliseconds grace{2'000};  // between SIGTERM and SIGKILL
  int fails_percent = 0;      // of the starts of a node's workers
  int hangs_percent = 0;
  int slow_death_percent = 0;  // of the kills, up to the kill bound
  int stuck_percent = 0;       // of the nodes' workers do not die of SIGKILL
  int stubborn_percent = 0;    // of the nodes' workers ignore SIGTERM
  int claims_percent = 0;      // of the nodes claim a rank
  milliseconds shortest_run{1};
  milliseconds longest_run{5'000};
};

// A machine that can stand still with its clock.
struct Host {
  bool is_dead = false;
  TimePoint frozen_until{};
  Duration stood_still{};         // in sum
  TimePoint long_frozen_until{};  // longer than a lease can answer for
};

// What all of a run share.
struct Stage {
  explicit Stage(uint64_t seed) : dice(seed), stuck_dice(~seed) {}

  Timeline time;
  Dice dice;
  Dice stuck_dice;  // so that other faults are the same with and without
  Plan plan;
  bool is_traced = false;
  bool is_calm = false;  // no faults any more
  std::map<int, Host> hosts;
  std::string violation;

  TimePoint LocalNow(int host) { return time.now() - hosts[host].stood_still; }

  template <typename Text>
  void Trace(const std::string& who, Text text) {
    if (!is_traced) return;
    auto since = time.now() - TimePoint(std::chrono::hours(1));
    double seconds = std::chrono::duration<double>(since).count();
    std::printf("%9.3f %-6s %s\n", seconds, who.c_str(), std::string(text()).c_str());
  }
  void Violate(std::string text) {
    if (!violation.empty()) return;
    Trace("", [&] { return "VIOLATED: " + text; });
    violation = std::move(text);
  }
};

}  // namespace rankrun::sim
