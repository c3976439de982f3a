#pragma once

#include <rankrun/c/types.h>
#include <rankrun/internal/stop_here.h>

// C form of diagnosis/breakpoint.h.

#ifdef __cplusplus
extern "C" {
#endif

// `skip` counts the calls with this `file`, which is not NULL, and `line`. The macro stops in the
// calling function, rankrun_breakpoint_at in a function of the library.
RANKRUN_API rankrun_status rankrun_breakpoint_at(int rank, int skip, const char* file, int line);
#define rankrun_breakpoint(rank, skip) \
  rankrun_internal_breakpoint((rank), (skip), __FILE__, __LINE__)

// As BreakpointInside. Sets `terminal` to the path, which the caller frees with
// rankrun_bytes_release, or to NULL.
RANKRUN_API rankrun_status rankrun_breakpoint_inside(int rank, int skip, const char* file, int line,
                                                     rankrun_bytes** terminal);
RANKRUN_API rankrun_status rankrun_let_others_go_on(void);
RANKRUN_API rankrun_status rankrun_return_terminal(void);

// Parts of rankrun_breakpoint. Sets `thread` to the number of this thread if it must stop, else 0.
RANKRUN_API rankrun_status rankrun_internal_begin_stop(int rank, int skip, const char* file,
                                                       int line, int* thread);
RANKRUN_API rankrun_status rankrun_internal_end_stop(void);
__attribute__((always_inline, artificial)) static inline rankrun_status rankrun_internal_breakpoint(
    int rank, int skip, const char* file, int line) {
  int thread = 0;
  const rankrun_status status = rankrun_internal_begin_stop(rank, skip, file, line, &thread);
  if (status != RANKRUN_OK || thread == 0) return status;
  RANKRUN_INTERNAL_STOP_HERE(thread);
  return rankrun_internal_end_stop();
}

#ifdef __cplusplus
}
#endif
