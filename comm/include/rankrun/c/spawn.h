#pragma once

#include <rankrun/c/types.h>

// C form of spawn.h, which describes the functions.

#ifdef __cplusplus
extern "C" {
#endif

// Processes of rankrun_spawn, owned by the caller until rankrun_spawn_release.
typedef struct rankrun_spawn_context rankrun_spawn_context;

// Runs in a new process. Returns its exit code: 0 for success, at most 255.
typedef int (*rankrun_spawn_function)(int rank, void* data);

// Starts `processes` processes, each with a copy of the caller's memory, in which
// `data` points to the same object. Waits for them if `context` is NULL.
// RANKRUN_PROCESS: one has failed; rankrun_last_error() has its rank and the reason.
RANKRUN_API rankrun_status rankrun_spawn(rankrun_spawn_function function, void* data,
                                         int32_t processes, rankrun_spawn_context** context);
// Waits for all. RANKRUN_DEFAULT_TIMEOUT means no limit, and the default grace.
// Sets *all_ended to 0 after the time-out, else to 1.
RANKRUN_API rankrun_status rankrun_spawn_join(rankrun_spawn_context* context, int64_t timeout_ms,
                                              int64_t grace_ms, int* all_ended);
// Gives the pid of process `rank`.
RANKRUN_API rankrun_status rankrun_spawn_pid(const rankrun_spawn_context* context, int rank,
                                             int32_t* pid);
// Ends processes that still run. Ignores NULL.
RANKRUN_API void rankrun_spawn_release(rankrun_spawn_context* context);

#ifdef __cplusplus
}
#endif
