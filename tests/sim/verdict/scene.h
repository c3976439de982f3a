#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/report/attempt_record.h"
#include "tests/sim/verdict/ends.h"

namespace rankrun::sim {

// One node of a scene: its workers, and the order in which its agent saw their ends.
struct SceneNode {
  int first_rank = 0;
  std::vector<Actor> actors = {};
  std::vector<agent::WorkerRecord> workers = {};
  std::vector<size_t> ended = {};
};

enum class Loss {
  kNone,
  kSilence,     // a node is silent for longer than the node timeout
  kAgentsDeath  // the next incarnation of the agent says that nothing is left
};

// A failed attempt of a job: one culprit, and the ends of all others, which follow from its end.
struct Scene {
  std::string name = {};  // of the culprit's fault
  std::vector<SceneNode> nodes = {};
  int culprit = -1;  // rank; -1: a lost node
  Loss loss = Loss::kNone;
  size_t lost_node = 0;           // if there is a loss
  bool culprit_is_first = false;  // no end is seen, and none reaches the coordinator, before its
};

// Makes a scene in which the end of the culprit differs from that of its victims, as far as
// docs/supervision.md promises to notice it.
Scene MakeScene(Dice& dice);

}  // namespace rankrun::sim
