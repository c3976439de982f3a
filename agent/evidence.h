#pragma once

#include <functional>

#include "agent/attempt_record.h"
#include "agent/error_directory.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Completes the record of a failed attempt with what the workers left on disk
// (their error files), and saves the ends of their standard errors beside
// them. Files may be slow or hang: the work is done in the pool, and after one
// second `done` gets what is known by then. `done` is called once, on the
// loop's thread, never from here. `errors` may be null: nothing is on disk.
void CompleteRecord(Loop& loop, const ErrorDirectory* errors, AttemptRecord record,
                    std::function<void(AttemptRecord)> done);

}  // namespace rankrun::agent
