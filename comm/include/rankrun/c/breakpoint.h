#pragma once

#include <rankrun/c/types.h>

// C form of diagnosis/breakpoint.h.

#ifdef __cplusplus
extern "C" {
#endif

// `skip` counts the calls with this `file`, which is not NULL, and `line`.
RANKRUN_API rankrun_status rankrun_breakpoint_at(int rank, int skip, const char* file, int line);
#define rankrun_breakpoint(rank, skip) rankrun_breakpoint_at((rank), (skip), __FILE__, __LINE__)

// As BreakpointInside. Sets `terminal` to the path, which the caller frees with
// rankrun_bytes_release, or to NULL.
RANKRUN_API rankrun_status rankrun_breakpoint_inside(int rank, int skip, const char* file, int line,
                                                     rankrun_bytes** terminal);
RANKRUN_API rankrun_status rankrun_let_others_go_on(void);
RANKRUN_API rankrun_status rankrun_return_terminal(void);

#ifdef __cplusplus
}
#endif
