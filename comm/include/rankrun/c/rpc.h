#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/c/store.h>
#include <rankrun/c/types.h>

// C form of rpc.h, which describes the functions, for calls of bytes. The library is
// librankrun_rpc.so.

#ifdef __cplusplus
extern "C" {
#endif

// Result of a method. It is over when the method returns.
typedef struct rankrun_rpc_reply rankrun_rpc_reply;
// Sets the bytes of the result, which it copies; without it they are none.
RANKRUN_API rankrun_status rankrun_rpc_reply_set(rankrun_rpc_reply* reply, const void* data,
                                                 size_t size);

// Carries out a call, in a thread of the library. `arguments` are valid until it returns.
// Another result than 0 is an error of the caller, with `reply`, if it is set, as its text.
typedef int (*rankrun_rpc_method)(const char* caller, const rankrun_bytes* arguments,
                                  rankrun_rpc_reply* reply, void* context);
// `context` lives as long as the process.
RANKRUN_API rankrun_status rankrun_rpc_register(const char* name, rankrun_rpc_method method,
                                                void* context);

typedef struct rankrun_rpc_options {
  uint32_t size;               // sizeof this struct
  int32_t rank;                // -1: RANK; in a dynamic group the lowest free id
  int32_t world_size;          // -1: WORLD_SIZE
  uint32_t is_dynamic;         // whether workers join and leave at any time
  int32_t num_worker_threads;  // methods that run at once
  int64_t rpc_timeout_ms;      // of calls without one; 0: none
  const rankrun_store* store;  // NULL: that of the environment
} rankrun_rpc_options;
RANKRUN_API rankrun_status rankrun_rpc_options_default(rankrun_rpc_options* options);

// NULL options: the defaults.
RANKRUN_API rankrun_status rankrun_rpc_init(const char* name, const rankrun_rpc_options* options);
RANKRUN_API rankrun_status rankrun_rpc_shutdown(int graceful, int64_t timeout_ms);

// Give the id of a worker, of this one if `name` is NULL; and the names of all workers by
// id, which the caller frees with rankrun_bytes_release, with their number.
RANKRUN_API rankrun_status rankrun_rpc_worker_id(const char* name, int32_t* id);
RANKRUN_API rankrun_status rankrun_rpc_worker_names(rankrun_bytes** names, size_t* count);

// Calls a method of the worker `to`, and gives one block of bytes, which the caller frees
// with rankrun_bytes_release. RANKRUN_REMOTE: the method has failed, or there is none.
RANKRUN_API rankrun_status rankrun_rpc_sync(const char* to, const char* method,
                                            const rankrun_bytes* arguments, int64_t timeout_ms,
                                            rankrun_bytes** result);

// Call under way, owned by the caller until rankrun_rpc_call_release, which does not end it.
typedef struct rankrun_rpc_call rankrun_rpc_call;
// Begins a call and returns it; NULL after an error.
RANKRUN_API rankrun_rpc_call* rankrun_rpc_async(const char* to, const char* method,
                                                const rankrun_bytes* arguments, int64_t timeout_ms);
// Waits for the result, and gives it as rankrun_rpc_sync does.
RANKRUN_API rankrun_status rankrun_rpc_wait(rankrun_rpc_call* call, rankrun_bytes** result);
RANKRUN_API void rankrun_rpc_call_release(rankrun_rpc_call* call);  // ignores NULL

#ifdef __cplusplus
}
#endif
