#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/node.h"
#include "tests/cluster/stage.h"

namespace rankrun::cluster {

constexpr std::chrono::seconds kNodeTimeout{4};  // of all jobs

// Kinds of faults of a run.
enum class Faults {
  kNone,
  kBreaks,    // connections break, and the coordinator stands still for a short time
  kWorkers,   // workers fail, and connections break
  kAgents,    // agents die
  kMachines,  // machines are lost, but not the coordinator's
  kFreezes,   // machines stand still
  kAll,       // also the coordinator's machine is lost, nodes are drained, and the job is closed
};

struct Options {
  uint64_t seed = 1;
  int nodes = 3;
  int max_restarts = 3;
  Faults faults = Faults::kNone;
  bool is_traced = false;
};

// A job whose nodes run the real connections, coordinator and memberships in this process, over
// real sockets of loopback and in virtual time.
class Cluster {
 public:
  explicit Cluster(const Options& options);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Runs until all nodes have ended. Returns the violations, one per line.
  std::string Run();

  Checker& checker() { return stage_.checker; }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  int faults() const { return fault_count_; }

 private:
  void Settle();
  bool IsOver() const;
  TimePoint Next() const;
  void MoveTo(TimePoint next);
  void PlanFaults();
  void Fault();
  void Disturb();
  void BreakConnection();
  std::vector<int> Connections() const;
  void LoseMachine(size_t first);
  void AddNode();
  void FaultOfAnyKind();
  Node& AnyNode() { return AnyNode(0); }
  Node& AnyNode(size_t first) {
    const auto count = static_cast<int>(nodes_.size() - first);
    return *nodes_[first + static_cast<size_t>(stage_.dice.Below(count))];
  }

  const Options options_;
  Stage stage_;
  uint16_t port_;
  bool has_secret_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int fault_count_ = 0;
  Duration unpolled_{};  // since the last moment of real time
};

}  // namespace rankrun::cluster
