#pragma once

#include <string>

namespace rankrun::agent {

// Why workers were ended: the first thing that went wrong on a node.
struct Cause {
  std::string text;            // "rank 5 on n3 (pid 77): killed by SIGKILL"
  int exit_code = 1;           // of the job, if it ends by this
  int rank = -1;               // of the worker; -1: it was none
  bool by_itself = true;       // not a lost peer, nor a signal of ours
  bool is_hopeless = false;    // another attempt would not help
  bool charges_budget = true;  // counts as a restart
  bool operator==(const Cause&) const = default;
};

// What of a round is left at a member.
enum class Work {
  kNone,      // nothing runs
  kPrepared,  // nothing runs; ready to start
  kRunning,
  kStopping,  // something runs, and was told to end
  kDone,      // all workers have succeeded, nothing runs
  kFinished,  // and the member knows that the job has succeeded
};

}  // namespace rankrun::agent
