#pragma once

#include <rankrun/backend.h>

/* The sum of up to 64 KiB of float32 through memory that the ranks share; the library
   carries out all other collectives. The functions are those of rankrun_backend. */

rankrun_status all_reduce_open(void* context, const rankrun_backend_group* group, void** state,
                               char* reason, size_t reason_size);
int all_reduce_takes(void* state, const rankrun_backend_call* call);
rankrun_status all_reduce_run(void* state, const rankrun_backend_call* call, char* reason,
                              size_t reason_size);
void all_reduce_close(void* state);
