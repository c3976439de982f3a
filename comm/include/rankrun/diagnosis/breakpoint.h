#pragma once

#include <string>

#include <rankrun/export.h>
#include <rankrun/peer.h>

namespace rankrun {

// Stops `rank` in a debugger on the terminal of its rankrun, while all other ranks wait
// (docs/comm.md). Returns on every rank once that one has gone on: by `continue`, `detach`
// or `quit` in the debugger, or because the debugger has ended. Ignores the first `skip`
// calls at `file` and `line`, which are those of the call.
//   rankrun::Breakpoint(rankrun::GlobalRank{2});
// All ranks of the world call it, with the same rank and skip, and meet within the world's
// time-out; then nothing but the end of a rank limits the wait. Collectives and messages
// that are under way meanwhile may time out. Ignored calls do not wait, except that the
// first one compares the arguments.
// Errors: DistError, there is no world, no such rank, or `skip` is negative;
// DistMismatchError, the ranks' arguments differ; DistTimeoutError with the ranks that
// have not called; DistNetworkError, a rank has ended, which breaks the world.
// Thread: as Init.
RANKRUN_API void Breakpoint(GlobalRank rank = {0}, int skip = 0,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE());

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
