#pragma once

namespace rankrun {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const char* why);

}  // namespace rankrun

// Ends the process with one line if `condition` does not hold, in release
// builds, too. Only for bugs in this code; errors that a user or a peer can
// cause are a Result.
#define RANKRUN_CHECK(condition, why) \
  ((condition) ? void() : ::rankrun::CheckFailed(__FILE__, __LINE__, #condition, why))
