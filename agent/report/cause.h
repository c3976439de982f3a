#pragma once

#include <string_view>
#include <vector>

#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// Returns the index of the worker whose failure caused the others. A worker
// that ended because of a lost peer or our own signal is the cause only if
// there is no primary failure. The order of the ends alone does not decide: a
// program that raises an exception often closes its connections before it ends,
// so that its peers may end earlier. `ended` has the indices in the order in
// which their ends were seen, and is not empty. Pure.
size_t ChooseCause(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended);

// Returns whether the last lines of a worker blame a lost peer, in an error
// text of PyTorch, Gloo, NCCL, the kernel or librankrun.
bool BlamesLostPeer(std::string_view stderr_tail);

// Returns whether a worker failed and its last lines or its exception blame a
// lost peer.
bool LostAPeer(const WorkerRecord& worker);

// Returns whether a worker is a primary failure: it failed before our signal,
// or was ending with an exception when the signal arrived, and did not lose a
// peer.
bool FailedByItself(const WorkerRecord& worker);

}  // namespace rankrun::agent
