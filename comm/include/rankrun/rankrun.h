#pragma once

// C ABI of librankrun, for C99 and every language that can call C. The
// functions behave as those of distributed.h, process_group.h, work.h,
// objects.h and store.h, including threads and lifetimes. The C headers
// describe only the differences.
//
//   double loss = ...;
//   rankrun_tensor tensor = {.data = &loss, .count = 1, .dtype = RANKRUN_FLOAT64};
//   if (rankrun_init(NULL) != RANKRUN_OK ||
//       rankrun_all_reduce(NULL, &tensor, NULL, RANKRUN_DEFAULT_TIMEOUT, NULL) != RANKRUN_OK) {
//     fprintf(stderr, "%s\n", rankrun_last_error());
//     exit(1);
//   }
//   rankrun_destroy(NULL);
//
// No function throws. When a function fails, it sets its output pointers to
// NULL and leaves its output numbers unchanged. A NULL handle or text is
// RANKRUN_INVALID unless the function allows it.

#include <rankrun/backend.h>
#include <rankrun/c/breakpoint.h>
#include <rankrun/c/collectives.h>
#include <rankrun/c/debug.h>
#include <rankrun/c/group.h>
#include <rankrun/c/interrupt.h>
#include <rankrun/c/join.h>
#include <rankrun/c/messages.h>
#include <rankrun/c/objects.h>
#include <rankrun/c/operation_hooks.h>
#include <rankrun/c/own_store.h>
#include <rankrun/c/spawn.h>
#include <rankrun/c/store.h>
#include <rankrun/c/types.h>
#include <rankrun/device_backend.h>
