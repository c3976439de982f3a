#pragma once

#include <string_view>

#include "base/result.h"

namespace rankrun {

// Writes all of `bytes` in as many calls as needed. Blocks as the descriptor
// does. Errors: kSystem; some of the bytes may have been written.
Result<void> TryWriteAll(int fd, std::string_view bytes);

// Writes all of `bytes`, but gives up when the descriptor accepts nothing for a
// second. For final messages of a process that must not hang on a full pipe.
void WriteLastWords(int fd, std::string_view bytes);

// Writes all of `bytes` where a failure cannot be handled.
void WriteAll(int fd, std::string_view bytes);

}  // namespace rankrun
