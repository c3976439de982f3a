#pragma once

#include <string>

#include <rankrun/export.h>
#include <rankrun/internal/stop_here.h>
#include <rankrun/peer.h>

namespace rankrun {

namespace internal {
// Parts of Breakpoint. Returns the number of this thread if it must stop, else 0.
RANKRUN_API int BeginStop(GlobalRank rank, int skip, const char* file, int line);
RANKRUN_API void EndStop();
}  // namespace internal

// Stops `rank` in a debugger on the terminal of its rankrun, while all other ranks wait
// (docs/comm.md). The debugger stands in the calling function, or with debug information in this
// one, which is inlined there: `up` shows the caller. Returns on every rank once that one has gone
// on: by `continue`, `detach` or `quit` in the debugger, or because the debugger has ended. Ignores
// the first `skip` calls at `file` and `line`, which are those of the call.
//   rankrun::Breakpoint(rankrun::GlobalRank{2});
// All ranks of the world call it, with the same rank and skip, and meet within the world's
// time-out; then nothing but the end of a rank limits the wait. Collectives and messages
// that are under way meanwhile may time out. Ignored calls do not wait, except that the
// first one compares the arguments.
// Errors: DistError, there is no world, no such rank, or `skip` is negative;
// DistMismatchError, the ranks' arguments differ; DistTimeoutError with the ranks that
// have not called; DistNetworkError, a rank has ended, which breaks the world.
// Thread: as Init.
[[gnu::always_inline, gnu::artificial]] inline void Breakpoint(GlobalRank rank = {0}, int skip = 0,
                                                               const char* file = __builtin_FILE(),
                                                               int line = __builtin_LINE()) {
  const int thread = internal::BeginStop(rank, skip, file, line);
  if (thread == 0) return;
  RANKRUN_INTERNAL_STOP_HERE(thread);
  internal::EndStop();
}

// For a debugger inside of the program, such as that of an interpreter: as Breakpoint, but
// `rank` does not stop. Returns at once, on that rank, the path of the terminal that it may
// use; on all others, once it goes on, and for ignored calls, an empty text. The terminal is
// that of its rankrun, where Ctrl-C sends SIGINT to this process, or else /dev/tty. A rank
// that has not returned it gets the same one at its next breakpoint.
// Errors: as Breakpoint; DistError, there is no terminal; then the others go on.
// Thread: as Init.
RANKRUN_API std::string BreakpointInside(GlobalRank rank = {0}, int skip = 0,
                                         const char* file = __builtin_FILE(),
                                         int line = __builtin_LINE());
// Lets the others go on; this rank keeps the terminal. Does nothing if none waits.
// Error: DistStoreError. Thread: as Init.
RANKRUN_API void LetOthersGoOn();
// Returns the terminal to rankrun; the others go on, too. Does nothing without one.
// Error: DistStoreError. Thread: as Init.
RANKRUN_API void ReturnTerminal();

}  // namespace rankrun
