#pragma once

#include <rankrun/c/types.h>

// For interpreters whose signal handlers run between their own instructions, as those of Python.

#ifdef __cplusplus
extern "C" {
#endif

// Returns 0, or another number to end the call of its thread, which then returns
// RANKRUN_INTERRUPTED. Must not wait for another call of the library. May call none itself but
// rankrun_last_error: others return RANKRUN_INVALID.
typedef int (*rankrun_interrupt_hook)(void* context);

// Asks `hook` every 50 ms while a function of the C ABI waits, in the thread of the call. Takes
// effect in calls that begin later; NULL: asks nothing. A collective or message that ends so breaks
// the group on all ranks, because a part of the data may have moved. rankrun_work_wait and
// rankrun_rpc_wait leave their operation under way, a store stays usable. With a hook, another
// thread carries out blocking collectives.
// Thread: any.
RANKRUN_API rankrun_status rankrun_set_interrupt_hook(rankrun_interrupt_hook hook, void* context);

#ifdef __cplusplus
}
#endif
