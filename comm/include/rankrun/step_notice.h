#pragma once

#include <cstdint>

#include <rankrun/export.h>

namespace rankrun {

// Reports that this worker has finished a step of its work. rankrun makes metrics of it: steps,
// the work that failures cost, and goodput (rankrun --metrics). Steps are counted over the whole
// job: a worker that has loaded the state of step 100 continues with 101. A negative step is
// ignored. Costs 20 ns and no system call. Needs no Init.
// Returns whether rankrun can read the notice; false if another launcher, or none, started this
// process.
// Thread: one at a time.
RANKRUN_API bool NoteStep(int64_t step);

}  // namespace rankrun
