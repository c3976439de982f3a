#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/shm/call_rendezvous.h"
#include "comm/shm/segment.h"

namespace rankrun::comm::shm {

// AllReduce with ranks outside of this segment. The root reduces the data of all
// ranks here, exchanges the result with the outside, and gives it to all ranks.
// This takes two call lines of each rank. Ranks other than the root publish both
// at once, and so wait only once.
// Thread: one at a time. Lifetime: segment and rendezvous outlive it.
class Relay {
 public:
  // Reduces the data with that of the ranks outside. In place.
  using Exchange = std::function<Result<void>(std::byte* data)>;

  Relay(const Segment& segment, CallRendezvous& calls);

  // Carries out an AllReduce of at most a buffer of round 0 (schedule.h), or a Barrier, by
  // `exchange` on the collective's root. The reduction is for the ranks here.
  Result<void> Run(const Collective& collective, const Call& call, const Exchange& exchange);

 private:
  Result<void> RunOnRoot(Block data, const Reduction& reduction, const Exchange& exchange);
  Result<void> RunElsewhere(Block data, int root);

  const Segment& segment_;
  CallRendezvous& calls_;
  std::vector<const void*> parts_;  // by rank
};

}  // namespace rankrun::comm::shm
