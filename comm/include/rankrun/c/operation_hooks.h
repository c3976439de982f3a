#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/c/types.h>

// Functions that are called when an operation starts and ends: diagnosis/operation_hooks.h in C.

#ifdef __cplusplus
extern "C" {
#endif

// OperationInfo. Valid during the call only. Later versions of the library append fields.
typedef struct rankrun_operation_info {
  uint32_t size;      // of the struct that the library has
  int32_t peer;       // global rank of the root or peer, or id of a worker; -1: none
  uint64_t id;        // the same at start and end, unique in the process
  const char* name;   // "AllReduce", "Send", "StoreGet", "RpcCall", "RpcMethod"
  const char* group;  // "": a wait for a store, or RPC
  const char* key;    // of a store, or method of RPC; else ""
  uint64_t sequence;  // 0 for messages and stores
  uint64_t count;     // elements
  uint64_t bytes;
  uint64_t tag;           // of messages
  int64_t started_ns;     // CLOCK_MONOTONIC, in nanoseconds
  int64_t ended_ns;       // the same; 0 at the start
  uint8_t dtype;          // a rankrun_dtype
  uint8_t has_succeeded;  // 0 at the start
} rankrun_operation_info;

typedef void (*rankrun_operation_hook)(void* context, const rankrun_operation_info* operation);
typedef struct rankrun_operation_hooks rankrun_operation_hooks;

// Calls the functions, either of which may be NULL, for all operations that start until
// rankrun_operation_hooks_release. Returns NULL after an error.
RANKRUN_API rankrun_operation_hooks* rankrun_operation_hooks_add(rankrun_operation_hook on_start,
                                                                 rankrun_operation_hook on_end,
                                                                 void* context);
// Waits for calls of the functions; none follows. Ignores NULL.
RANKRUN_API void rankrun_operation_hooks_release(rankrun_operation_hooks* hooks);

#ifdef __cplusplus
}
#endif
