#pragma once

#include <rankrun/export.h>

namespace rankrun {

// How much the library checks and logs (docs/comm.md). The level belongs to the
// process. It is that of the variable RANKRUN_DEBUG, else of TORCH_DISTRIBUTED_DEBUG:
// OFF, INFO or DETAIL in lower or upper case; without both it is kOff.
enum class DebugLevel {
  kOff = 0,
  kInfo = 1,  // logs groups, and first and slow collectives
  // Also logs each collective, and compares it among the ranks before it runs. On GPU
  // memory each call, kAsync, too, therefore waits until all ranks have called. With
  // TORCH_SHOW_CPP_STACKTRACES=1 a DistMismatchError has lines with the call's stack.
  kDetail = 2,
};

// Returns the level, which the first call reads from the variables.
// Error: DistError, with the variable and the values it may have.
// Thread of all: any.
RANKRUN_API DebugLevel GetDebugLevel();
// Sets the level, so that Init reads it from no variable. If a rank sets kDetail, all do,
// else the next call that makes a group is a DistMismatchError. Groups that exist log
// accordingly, and go on to compare calls as they did.
// Error: DistError, `level` is none of the above.
RANKRUN_API void SetDebugLevel(DebugLevel level);
// Reads the level from the variables again. Errors: as GetDebugLevel; the level stays.
RANKRUN_API void SetDebugLevelFromEnv();

}  // namespace rankrun
