#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/coordination/coordinator_events.h"
#include "tests/sim/dice.h"
#include "tests/sim/sim.h"
#include "tests/sim/timeline.h"

namespace rankrun::sim {

// Parameters of a run.
struct Plan {
  agent::CoordinatorPolicy policy;
  milliseconds grace{2'000};  // from SIGTERM to SIGKILL
  int fails_percent = 0;      // of the worker starts of a node
  int hangs_percent = 0;
  int slow_death_percent = 0;  // of the kills; the death takes up to the kill bound
  int stuck_percent = 0;       // of the nodes, whose workers do not die of SIGKILL
  int stubborn_percent = 0;    // of the nodes, whose workers ignore SIGTERM
  int claims_percent = 0;      // of the nodes, which claim a rank
  int sick_node = -1;          // whose workers fail each time; -1: none
  milliseconds shortest_run{1};
  milliseconds longest_run{5'000};
};

// A machine that can stand still, together with its clock.
struct Host {
  bool is_dead = false;
  // Its firewall refuses connections from other hosts; empty: not drawn yet.
  std::optional<bool> rejects = {};
  TimePoint frozen_until{};
  Duration stood_still{};         // in total
  TimePoint long_frozen_until{};  // longer than a lease covers
};

// State that all parts of a run share.
struct Stage {
  explicit Stage(uint64_t seed)
      : dice(seed), stuck_dice(~seed), liveness_dice(seed ^ 0x6c6976656e657373) {}

  Timeline time;
  Dice dice;
  // Separate, so that they do not change the other faults.
  Dice stuck_dice;
  Dice liveness_dice;  // of liveness ports and dials
  Plan plan;
  bool is_traced = false;
  bool is_calm = false;  // no further faults
  std::map<int, Host> hosts;
  std::string violation;

  TimePoint LocalNow(int host) { return time.now() - hosts[host].stood_still; }

  Duration since_start() const { return time.now() - TimePoint(std::chrono::hours(1)); }

  template <typename Text>
  void Trace(const std::string& who, Text text) {
    if (!is_traced) return;
    double seconds = std::chrono::duration<double>(since_start()).count();
    std::printf("%9.3f %-6s %s\n", seconds, who.c_str(), std::string(text()).c_str());
  }
  void Violate(std::string text) {
    if (!violation.empty()) return;
    Trace("", [&] { return "VIOLATED: " + text; });
    violation = std::move(text);
  }
};

}  // namespace rankrun::sim
