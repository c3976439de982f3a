#pragma once

#include <cstdint>
#include <string>

#include "agent/job/job_spec.h"

namespace rankrun::agent {

// Place of this node in an attempt: the ranks of its workers among all workers,
// and the address of the store.
struct NodePlace {
  int attempt = 0;
  int node_rank = 0;
  int node_count = 1;
  int first_rank = 0;  // global rank of the first worker
  int world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  std::string interface = {};  // network interface that reaches the other nodes; empty: any
};

// Returns the place of the only node of a job.
NodePlace PlaceAlone(const JobSpec& spec, int attempt, uint16_t store_port);

}  // namespace rankrun::agent
