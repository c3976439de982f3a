#pragma once

#include <rankrun/c/types.h>

// For interpreters whose signal handlers run between their own instructions, as those of Python.

#ifdef __cplusplus
extern "C" {
#endif

// Returns 0, or another number to end the call of its thread. Must not throw, nor wait for another
// call of the library. May call none itself but rankrun_last_error: others return RANKRUN_INVALID.
typedef int (*rankrun_interrupt_hook)(void* context);

// Asks `hook` every 50 ms while a function of the C ABI waits, in the thread of the call. A call
// that ends by it returns RANKRUN_INTERRUPTED; one that is complete then returns its own status, so
// a binding looks for its own exception, too. It releases its interpreter's lock around each call,
// because the hook may be asked while a lock of the library is held. Takes effect in calls that
// begin later; NULL: asks nothing.
//
// A blocking collective or message that ends so breaks the group on all ranks, because a part of
// the data may have moved, and rankrun_destroy breaks it if calls are under way.
// rankrun_monitored_barrier and rankrun_new_group fail on the other ranks, too. rankrun_rpc_wait
// leaves its call under way, and so does rankrun_work_wait, unless it carries the operation out
// itself, because no thread had begun it. A store stays usable, unless its server does not answer.
// With a hook, another thread carries out blocking collectives of Gloo, MPI and NCCL.
//
// The library does not ask it while a call waits for another thread's call on the same group or
// store, or (for 30 s) for the ends of processes that rankrun_spawn has signalled, nor in functions
// that return void.
// Thread: any.
RANKRUN_API rankrun_status rankrun_set_interrupt_hook(rankrun_interrupt_hook hook, void* context);

#ifdef __cplusplus
}
#endif
