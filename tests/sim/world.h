#pragma once

#include <memory>
#include <vector>

#include "tests/sim/checker.h"
#include "tests/sim/network.h"
#include "tests/sim/node.h"
#include "tests/sim/sim.h"
#include "tests/sim/stage.h"

namespace rankrun::sim {

// A job on simulated machines, and the faults there.
class World {
 public:
  explicit World(const Options& options);

  Result Run();

 private:
  void Choose(const Options& options);
  void ChooseFaults();
  void StartNode(int host, bool has_coordinator);
  void PlanFaults();
  void Fault();
  void LoseMachine(Node& node);
  void LoseEndpoint();
  void Partition();
  void StandStill(Node& node);
  void CalmDown();
  bool IsOver() const;
  Node* AnyNode();
  Node& CoordinatorsNode() { return *nodes_[static_cast<size_t>(coordinators_node_)]; }
  void CheckEnd(Result& result);

  const Options options_;
  Stage stage_;
  Network network_;
  Checker checker_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int coordinators_node_ = 0;
  int coordinator_host_ = 0;
  int next_host_ = 0;
  int worlds_ = 0;
  bool is_endpoint_lost_ = false;
};

}  // namespace rankrun::sim
