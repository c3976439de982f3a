#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"

namespace rankrun::agent {

// Place of one worker in one attempt, and its files.
struct WorkerPlace {
  int local_rank;
  NodePlace node;
  int threads;                       // default number of threads, by its cores
  std::string error_file;            // empty: none
  std::string status_path;           // of the worker's status page; empty: none
  std::string save_fifo = {};        // named pipe for reports of saving; empty: none
  std::string timer_file = {};       // named pipe of torchrun's file timer; empty: none
  std::string breakpoint_pipe = {};  // path of the pipe for breakpoints; empty: none
  std::string trace_dir = {};        // for the traces of the job; empty: none
};

// Returns the whole environment of a worker: the user's, overlaid with the
// variables of torchrun's contract. Pure.
// Source: pytorch.org/docs/stable/elastic/run.html
std::vector<std::string> WorkerEnvironment(const JobSpec& spec, const WorkerPlace& place);

}  // namespace rankrun::agent
