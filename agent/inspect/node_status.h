#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/stack_suspect.h"
#include "agent/health/store_waits.h"
#include "agent/health/worker_sample.h"
#include "base/result.h"

namespace rankrun::agent {

// State of one worker. Times are in seconds.
struct WorkerStatus {
  std::string state{};    // "running", "sleeping", "stopped", "exit code 1"
  bool is_alive = false;  // its process exists
  double seconds = 0;     // since the attempt began, or since the worker ended
  std::string doing{};    // "in AllReduce #12 (16 x float32, sum) of world"; empty: unknown
  double doing_seconds = 0;
  std::string last_line{};              // of its output
  WorkerSample sample{};                // its ranks, its pid, and the facts for a roll call
  std::optional<StackDigest> stacks{};  // no part of an answer: taken by `rankctl` itself
};

// One node of a job, as its agent sees it.
struct NodeStatus {
  std::string job;
  std::string node;
  std::string version;  // of rankrun
  std::string program;  // with its arguments
  pid_t agent = 0;
  pid_t guardian = 0;
  std::string phase{};  // "running", "stopping", "pausing", "waiting"
  int attempt = 0;      // -1: none yet
  int node_rank = -1;   // -1: in no round
  int nodes = 1;        // of the round
  int world_size = 0;
  int max_restarts = 0;
  double seconds = 0;          // since the job began
  double attempt_seconds = 0;  // since the attempt began
  std::vector<WorkerStatus> workers{};
  std::string waits{};                         // why the node is in no round; empty: it is in one
  int omitted = 0;                             // workers that had no room
  std::vector<WaitingClient> store_clients{};  // that wait at the store, if this node hosts it
};

// Sets the waits at the store of the workers of several nodes, because the node that hosts the
// store does not know the workers of the others. Pure.
void ShareStoreWaits(std::vector<NodeStatus>& nodes);

// Encodes a status as JSON of at most `max_bytes`. Leaves out the last lines first, then groups,
// whose workers have no has_all_groups then, then workers. Pure.
std::string EncodeStatus(const NodeStatus& status, size_t max_bytes);
// Ignores unknown fields. Every text of the result can be shown on a terminal. Pure.
// Errors: kProtocol.
Result<NodeStatus> DecodeStatus(std::string_view json);

}  // namespace rankrun::agent
