#include "agent/job/node_place.h"

namespace rankrun::agent {

NodePlace PlaceAlone(const JobSpec& spec, int attempt, uint16_t store_port) {
  return {.attempt = attempt,
          .world_size = spec.workers,
          .master_addr = spec.master_addr,
          .master_port = store_port};
}

}  // namespace rankrun::agent
