#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/node_work.h"

namespace rankrun::agent {

// A process that does not die of SIGKILL.
struct StuckProcess {
  int local_rank = -1;    // of the worker; -1: a process that it left behind
  std::string what = {};  // "pid 71 (python3), state D in nfs_wait"
  bool operator==(const StuckProcess&) const = default;
};

// Opens a connection, the first one and each after a break: all of a member's state.
struct Hello {
  uint64_t node = 0;    // which rankrun: random, kept over incarnations
  int incarnation = 0;  // which of its agents
  std::string name;     // of the node, for messages
  int slots = 1;        // workers
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank = {};        // claimed
  std::optional<int> node_index = {};       // a scheduler's, for the order
  std::vector<std::string> addresses = {};  // where others may reach it, best first
  int round = 0;                            // of its work; 0: it had none
  int attempts = 0;                         // of the job, that it has seen begin
  Work work = Work::kNone;
  std::optional<Cause> failure = {};  // of its work
  int stop_ms = 0;                    // how long a stop may take there
  std::optional<StuckProcess> stuck = {};
  bool operator==(const Hello&) const = default;
};

}  // namespace rankrun::agent
