#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"

namespace rankrun::agent {

// Place of the workers of this node in one attempt, and the files that they share.
struct AttemptPlace {
  NodePlace node;
  std::string save_fifo = {};        // named pipe for reports of saving; empty: none
  std::string timer_file = {};       // named pipe of torchrun's file timer; empty: none
  std::string breakpoint_pipe = {};  // path of the pipe for breakpoints; empty: none
  std::string trace_dir = {};        // for the traces of the job; empty: none
  std::string torch_dumps = {};      // for the flight recorder of PyTorch; empty: none
};

// Place of one worker, and its files.
struct WorkerPlace {
  int local_rank;
  int threads;              // default number of threads, by its cores
  std::string error_file;   // empty: none
  std::string status_path;  // of the worker's status page; empty: none
};

// The environments of the workers of an attempt: the user's, overlaid with the variables of
// torchrun's contract. Pure.
// Source: pytorch.org/docs/stable/elastic/run.html
class WorkerEnvironment {
 public:
  // `spec` outlives this object.
  WorkerEnvironment(const JobSpec& spec, const AttemptPlace& place);

  // Returns the whole environment of a worker.
  std::vector<std::string> Of(const WorkerPlace& worker) const;

 private:
  const JobSpec& spec_;
  const int first_rank_;
  bool has_threads_;                 // the user has set OMP_NUM_THREADS
  std::vector<std::string> common_;  // that all workers share: "NAME=value"
};

}  // namespace rankrun::agent
