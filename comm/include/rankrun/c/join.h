#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/c/types.h>

// Training with different numbers of inputs on the ranks: join.h in C.

#ifdef __cplusplus
extern "C" {
#endif

// Object whose steps make collectives. The size of this struct never changes, because
// programs keep arrays of it.
typedef struct rankrun_joinable {
  rankrun_group* group;  // the same of all joinables; NULL: the world
  void* context;         // argument of the functions
  // JoinHook::MainHook and JoinHook::PostHook; NULL: does nothing. Another result than
  // RANKRUN_OK, such as that of a call that failed, is the result of rankrun_join_finish.
  rankrun_status (*main_hook)(void* context);
  rankrun_status (*post_hook)(void* context, int is_last_joiner);
} rankrun_joinable;

typedef struct rankrun_join_options {
  uint32_t size;  // sizeof this struct
  uint32_t enable;
  uint32_t throw_on_early_termination;
} rankrun_join_options;
// Sets the defaults: enabled, without errors.
RANKRUN_API rankrun_status rankrun_join_options_default(rankrun_join_options* options);

typedef struct rankrun_join rankrun_join;
// Begins a scope for `count` joinables, which it copies. NULL options: the defaults. Returns
// NULL after an error.
RANKRUN_API rankrun_join* rankrun_join_begin(const rankrun_joinable* joinables, size_t count,
                                             const rankrun_join_options* options);
// NotifyJoinContext of the first joinable, before the collectives of each step.
RANKRUN_API rankrun_status rankrun_join_notify(rankrun_join* join);
// Join::Finish.
RANKRUN_API rankrun_status rankrun_join_finish(rankrun_join* join);
// Ends the scope; without rankrun_join_finish the group breaks. Ignores NULL.
RANKRUN_API void rankrun_join_end(rankrun_join* join);

#ifdef __cplusplus
}
#endif
