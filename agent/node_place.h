#pragma once

#include <cstdint>
#include <string>

#include "agent/job_spec.h"

namespace rankrun::agent {

// What an attempt is to this node: where its workers stand among all, and where
// they meet.
struct NodePlace {
  int attempt = 0;
  int node_rank = 0;
  int node_count = 1;
  int first_rank = 0;  // global rank of the first worker
  int world_size = 1;
  std::string master_addr;
  uint16_t master_port = 0;
  std::string interface = {};  // by which the others were reached; empty: any
};

// Of a job of one node.
NodePlace PlaceAlone(const JobSpec& spec, int attempt, uint16_t store_port);

}  // namespace rankrun::agent
