#pragma once

#include <string>
#include <vector>

#include "agent/report/attempt_record.h"
#include "agent/report/ending.h"

// The first cause of a failed attempt, from the evidence of all its workers. Pure.
namespace rankrun::agent {

// Returns `worker.ending`, or judges the worker's exit and its last error.
Ending EndingOf(const WorkerRecord& worker);

// Returns the kind of `EndingOf(worker)`, in a quarter of the time.
EndKind EndKindOf(const WorkerRecord& worker);

// Returns the output that has a worker's errors: standard output if standard error is empty,
// because a shell may have joined them: `python train.py 2>&1 | tee log`.
const std::string& OutputOfErrors(const WorkerRecord& worker);

// Returns how the cause ended: "exit code 3". It may have succeeded: "exit code 0, while others
// still needed it".
std::string CauseInWords(const WorkerRecord& cause);

// Returns the index of the worker whose failure caused the others. `ended` has the indices
// in the order in which their ends were seen, and is not empty. The order alone decides
// only among equals: a program that raises an exception often closes its connections
// before it ends, so that its peers may end earlier. docs/supervision.md has the rules.
size_t ChooseCause(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended);

// Judges each end and chooses the cause, once the evidence is complete. A worker that
// hangs in the kernel stays the cause. `has_all_workers`: the record is not that of one node among
// several.
void Judge(AttemptRecord& record, bool has_all_workers = true);

}  // namespace rankrun::agent
