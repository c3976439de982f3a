#pragma once

#include <string_view>

#include "base/result.h"

namespace rankrun {

// Writes all of `bytes`, however many calls it takes. Blocks as the descriptor
// does. Errors: kSystem; how much was written before is unknown then.
Result<void> TryWriteAll(int fd, std::string_view bytes);

// The same, but gives up when the descriptor takes nothing for a second: for
// the last words of a process that must not hang on a full pipe.
void WriteLastWords(int fd, std::string_view bytes);

// The same where nothing can be done about a failure.
void WriteAll(int fd, std::string_view bytes);

}  // namespace rankrun
