#pragma once

#include <string>

#include <rankrun/call_options.h>
#include <rankrun/process_group.h>

#include "base/result.h"

namespace rankrun::comm {

// Fails on all ranks unless all have the same model. `text`: of this rank's model, or why it
// has none. Moves 16 bytes per rank; the texts only if they differ.
// Errors: kMismatch and kInvalid as CompareModelTexts; exceptions of the group.
Result<void> AgreeOnModel(ProcessGroup& group, const Result<std::string>& text, Timeout timeout);

}  // namespace rankrun::comm
