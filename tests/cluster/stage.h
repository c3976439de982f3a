#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tests/cluster/checker.h"
#include "tests/cluster/virtual_time.h"
#include "tests/sim/dice.h"
#include "tests/sim/timeline.h"

namespace rankrun::cluster {

using std::chrono::milliseconds;

// Chances of events of the workers.
struct Plan {
  int worker_fails_percent = 0;   // of each attempt and node
  int peers_notice_percent = 70;  // that workers of other nodes end when they lose a peer
  milliseconds shortest_run{200};
  milliseconds longest_run{8'000};
};

// State that all nodes of a run share.
struct Stage {
  sim::Dice dice;
  Plan plan = {};
  bool is_calm = false;  // no further faults
  bool is_traced = false;
  sim::Timeline time = {};
  Checker checker = {};
  std::map<int, TimePoint> frozen_until = {};  // by node
  // The workers of a node end, so that others lose their peer.
  std::function<void(int node)> on_peers_lost = {};

  void After(Duration delay, std::function<void()> what) {
    time.At(test::VirtualNow() + delay, std::move(what));
  }
  bool IsAwake(int node) const {
    const auto found = frozen_until.find(node);
    return found == frozen_until.end() || test::VirtualNow() >= found->second;
  }
  void Trace(const std::string& who, const std::string& what) const {
    if (!is_traced) return;
    const auto at = std::chrono::duration_cast<milliseconds>(test::VirtualNow().time_since_epoch());
    std::printf("%9.3f %s %s\n", static_cast<double>(at.count()) / 1000 - 3600, who.c_str(),
                what.c_str());
  }
};

}  // namespace rankrun::cluster
