#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "agent/node_place.h"

namespace rankrun::agent {

// The place of one worker in one attempt.
struct WorkerPlace {
  int local_rank;
  NodePlace node;
  int threads;                  // that fit on its cores
  std::string error_file;       // empty: there is none
  std::string status_path;      // of the worker's status page; empty: there is none
  std::string save_fifo = {};   // the named pipe for its word that it saves; likewise
  std::string timer_file = {};  // the named pipe of torchrun's file timer; likewise
};

// The whole environment of a worker: the user's, overlaid with what torchrun's
// contract promises. Pure.
// Source: pytorch.org/docs/stable/elastic/run.html
std::vector<std::string> WorkerEnvironment(const JobSpec& spec, const WorkerPlace& place);

// A variable of "NAME=value" entries; the last one counts.
std::optional<std::string> VariableOf(const std::vector<std::string>& environment,
                                      const std::string& name);

}  // namespace rankrun::agent
