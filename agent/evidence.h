#pragma once

#include <functional>
#include <string>

#include "agent/attempt_record.h"
#include "agent/log_directory.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Completes the record of a failed attempt with what the workers left on disk
// (their error files) and why the kernel may have killed them, and saves the
// ends of standard errors that have no log file where that would be. Files may
// be slow or hang: the work is done in the pool, the cause's first, and after
// one second `done` gets what is known by then. `done` is called once, on the
// loop's thread, never from here. `directory` may be null: nothing is on disk.
// `root` is where the kernel's own files are.
void CompleteRecord(Loop& loop, const LogDirectory* directory, AttemptRecord record,
                    std::function<void(AttemptRecord)> done, const std::string& root = "");

}  // namespace rankrun::agent
