#pragma once

#include <string_view>
#include <vector>

#include "agent/attempt_record.h"

namespace rankrun::agent {

// Which worker failed first, as an index into `workers`, in the order of
// causality: a worker that died of a broken connection or of our own signal is
// not the cause while another one failed by itself. A program that raises often
// closes its connections before it ends, so that its peers may end earlier.
// `ended` are the indices in the order in which their ends were seen; not
// empty. Pure.
size_t ChooseCause(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended);

// Whether a worker's last words say that it lost a peer: the words of PyTorch,
// Gloo, NCCL, the kernel and librankrun.
bool SaysItLostAPeer(std::string_view stderr_tail);

// Whether a worker failed and its last words or its exception say so.
bool LostAPeer(const WorkerRecord& worker);

// Whether a worker failed for a reason of its own: before it was told to end,
// or with an exception when it was, and not of a lost peer.
bool FailedByItself(const WorkerRecord& worker);

}  // namespace rankrun::agent
