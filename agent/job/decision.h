#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// Decisions of the coordinator, as events for programs that watch a job. Only the
// node of the coordinator has them. docs/events.md describes their fields.
namespace rankrun::agent::events {

// A node belongs to the job from now on.
struct NodeJoined {
  std::string node;
  int incarnation;  // of its agent
  int workers;
};

// A node may not take part.
struct NodeRefused {
  std::string node;
  std::string why;
};

// The job no longer counts on a node.
struct NodeDropped {
  std::string node;
  std::string why;
};

// A node that has failed too often becomes a spare.
struct NodeReplaced {
  std::string node;
  std::string spare;  // that takes its place
  int failures;       // in a row
};

// A round was proposed to its nodes.
struct RoundFormed {
  int round;
  int world_size;
  int node_count;
  std::vector<std::string> nodes;  // names of the first ones, in the order of their node ranks
};

// All workers of a round are stopped.
struct RoundStopping {
  int round;
  std::string node;         // where the cause is; empty: nowhere
  std::optional<int> rank;  // global rank of the worker that is the cause
  std::string why;
};

// Nothing of a round is left, and another one follows.
struct RestartDecided {
  int round;
  int number;    // restarts that are used up
  bool is_free;  // it uses up none
  std::chrono::milliseconds pause;
  std::string why;
};

// The job is over.
struct VerdictGiven {
  int exit_code;
  std::string why;  // empty: all workers succeeded
};

using Decision = std::variant<NodeJoined, NodeRefused, NodeDropped, NodeReplaced, RoundFormed,
                              RoundStopping, RestartDecided, VerdictGiven>;

}  // namespace rankrun::agent::events
