#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/node_state.h"

namespace rankrun::agent {

constexpr size_t kMaxNameBytes = 256;  // of a node

// A process that survives SIGKILL.
struct StuckProcess {
  int local_rank = -1;    // of the worker; -1: a descendant that a worker left behind
  std::string what = {};  // "pid 71 (python3), state D in nfs_wait"
  bool operator==(const StuckProcess&) const = default;
};

// First message on every connection: the whole state of the member, so that
// nothing else is sent again after a break.
struct Hello {
  uint64_t node = 0;    // random id of this rankrun, kept over incarnations
  int incarnation = 0;  // of its agent
  std::string name;     // of the node, for messages to the user
  int slots = 1;        // workers
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank = {};        // claimed by the user
  std::optional<int> node_index = {};       // from the scheduler; orders the nodes
  std::vector<std::string> addresses = {};  // at which other nodes reach it, best first
  int round = 0;                            // that `work` belongs to; 0: none yet
  int attempts = 0;                         // of the job, as far as this member has seen
  NodeState work = NodeState::kNone;
  std::optional<Cause> failure = {};  // of `round`
  int stop_ms = 0;                    // longest time that a stop may take, in milliseconds
  std::optional<StuckProcess> stuck = {};
  // Refuses connections once agent and guardian are gone; empty: the node has none.
  std::optional<uint16_t> liveness_port = {};
  bool operator==(const Hello&) const = default;
};

// Returns the reason to refuse a node for the values in its hello; empty: none. Members know the
// job secret, but one of them may be broken or hostile. `known_round`: the highest of the job.
// Pure.
std::string ProblemOf(const Hello& hello, int min_nodes, int max_nodes, int known_round);

}  // namespace rankrun::agent
