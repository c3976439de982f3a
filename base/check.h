#pragma once

namespace rankrun {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const char* why);

}  // namespace rankrun

// Ends the process with one line if `condition` does not hold. For bugs of
// ours only, in release builds too; what a user or a peer can cause is a
// Result.
#define RANKRUN_CHECK(condition, why) \
  ((condition) ? void() : ::rankrun::CheckFailed(__FILE__, __LINE__, #condition, why))
