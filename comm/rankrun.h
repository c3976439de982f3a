#pragma once

// The C ABI of librankrun: C99, and any language that can call C. What is said
// in distributed.h, process_group.h, work.h, objects.h and store.h holds here
// too, threads and lifetimes among it; here is only what is different.
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
// No function throws. A pointer through which something is given is set to
// NULL (a number: left alone) when the function fails. Handles and text that
// are NULL, where nothing says that they may be, are RANKRUN_INVALID.

#include <rankrun/c_collectives.h>
#include <rankrun/c_group.h>
#include <rankrun/c_messages.h>
#include <rankrun/c_objects.h>
#include <rankrun/c_store.h>
#include <rankrun/c_types.h>
