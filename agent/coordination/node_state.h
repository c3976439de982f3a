#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {

// Why workers are stopped: the first failure on a node.
struct Cause {
  std::string text;              // "rank 5 on n3 (pid 77): killed by SIGKILL"
  int exit_code = 1;             // of the job, if it ends for this cause
  int rank = -1;                 // global rank of the worker; -1: no worker
  bool is_primary = true;        // neither a lost peer nor a signal of ours
  bool may_be_victim = false;    // such as a time-out: the fault may be on another node
  bool is_fatal = false;         // another attempt would not help
  bool consumes_restart = true;  // counts against --max-restarts
  // Id of the node that failed, set by the coordinator; empty: unknown, or the node is lost.
  std::optional<uint64_t> node = {};
  bool operator==(const Cause&) const = default;
};

// Returns `cause` with an exit code that is none of a success.
inline Cause AsFailure(Cause cause) {
  if (cause.exit_code == 0) cause.exit_code = kExitInternalError;
  return cause;
}

// State of a round on one node.
enum class NodeState {
  kNone,      // nothing runs
  kPrepared,  // nothing runs; ready to start
  kRunning,
  kStopping,  // workers run, but are being stopped
  kDone,      // all workers have succeeded; nothing runs
  kFinished,  // kDone, and the member knows that the job has succeeded
};

}  // namespace rankrun::agent
