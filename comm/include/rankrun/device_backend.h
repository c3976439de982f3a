#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/c/call_kind.h>
#include <rankrun/c/types.h>

// Interface for backends for GPU memory that are written outside of rankrun, in C.
//
// Such a backend enqueues collectives and messages on a GPU, in the order of the
// program's streams. The library names it in a map such as "cpu:shm,cuda:x",
// checks the arguments, compares the calls of the ranks by the backend for CPU
// memory, keeps time-outs and notices deaths: then it calls `abort`.
//
// A program can use the backend "x" after rankrun_register_device_backend, or if
// there is a library librankrun_x.so (RANKRUN_PLUGIN_DIR in distributed.h) that
// defines rankrun_device_backend_entry. It stays loaded until the process ends.

#ifdef __cplusplus
extern "C" {
#endif

#define RANKRUN_DEVICE_BACKEND_VERSION 1

// Process group, valid until `destroy`.
typedef struct rankrun_device_group {
  uint32_t size;                // sizeof this struct in the library
  int32_t rank;                 // of this process in the group
  int32_t world_size;           // number of ranks in the group, at least 1
  uint32_t reserved;            // 0
  const int32_t* global_ranks;  // by group rank; for texts
  const char* name;             // for texts
  // Store for the backend's own keys of this group; the library owns it. A wait in it
  // does not end at a death: wait for a short time only, then ask is_cancelled.
  rankrun_store* store;
  // Returns 1 if the backend must end a wait for other ranks: a rank has died, or
  // `abort` was called. Thread: any.
  int (*is_cancelled)(const struct rankrun_device_group* group);
  void* internal;  // of the library
} rankrun_device_group;

// Collective or message on memory of one GPU, with the blocks of its kind (call_kind.h). Valid
// during the function that gets it; the memory of its blocks until the work is over.
typedef struct rankrun_device_call {
  uint32_t size;     // sizeof this struct in the library
  uint8_t kind;      // a rankrun_call_kind
  uint8_t dtype;     // a rankrun_dtype
  uint8_t op;        // of reductions: a rankrun_op
  uint8_t reserved;  // 0
  double factor;     // of RANKRUN_PREMUL_SUM
  int32_t root;      // group rank; of a message: the other rank; -1: none
  int32_t device;    // index of the GPU
  void* stream;      // of the program; NULL: the GPU's default stream
  const rankrun_bytes* outputs;
  const rankrun_bytes* inputs;
  size_t output_count;
  size_t input_count;
  int64_t timeout_ms;  // for connecting to other ranks
} rankrun_device_call;

// Functions write a text without a final period to `reason` after an error. It holds
// `reason_size` bytes. RANKRUN_INVALID from find_devices, create and check becomes a DistError;
// RANKRUN_TIMEOUT becomes a DistTimeoutError, RANKRUN_NETWORK a DistNetworkError, all
// others a DistBackendError, after which the group is broken on all ranks. No function may
// throw. A function that needs a current CUDA device sets it, then restores the caller's.
// Later versions have more members at the end.
//
// Threads: any, several at once; but calls of `enqueue` never overlap each other, nor do
// those of `start` and `advance`, and `create` comes first, `destroy` last.
typedef struct rankrun_device_backend {
  uint32_t size;     // sizeof this struct
  uint32_t version;  // RANKRUN_DEVICE_BACKEND_VERSION
  const char* name;  // of small letters, digits and _
  void* context;     // argument of the first two functions; may be NULL

  // Fails if this process has no GPU that the backend can use.
  rankrun_status (*find_devices)(void* context, char* reason, size_t reason_size);
  // Sets `state`, the argument of the others, which may be NULL. Waits for no other rank.
  rankrun_status (*create)(void* context, const rankrun_device_group* group, void** state,
                           char* reason, size_t reason_size);
  // Frees the state that `create` has made. All of its works are released.
  void (*destroy)(void* state);

  // Fails with RANKRUN_INVALID if no rank can carry out such a call, such as a sum of
  // booleans.
  rankrun_status (*check)(void* state, const rankrun_device_call* call, char* reason,
                          size_t reason_size);
  // Enqueues a collective behind all that the stream has, and sets `work`. Waits for
  // other ranks to connect only. No other `enqueue` follows an error.
  rankrun_status (*enqueue)(void* state, const rankrun_device_call* call, void** work, char* reason,
                            size_t reason_size);
  // Starts a message without waiting for the other rank. Messages from one rank to
  // another are matched in the order of their start. NULL: the backend has no messages.
  rankrun_status (*start)(void* state, const rankrun_device_call* call, void** work, char* reason,
                          size_t reason_size);
  // Continues a message, and those before it, without waiting. Sets `enqueued` to 1 when
  // the GPU has it; only then the next two functions follow. NULL: as `start`.
  rankrun_status (*advance)(void* work, int* enqueued, char* reason, size_t reason_size);

  // Sets `done` to 1 when the GPU is done with the work.
  rankrun_status (*test)(void* work, int* done, char* reason, size_t reason_size);
  // Lets later work in the stream wait for this work. Does not wait itself.
  rankrun_status (*wait_in)(void* work, void* stream, char* reason, size_t reason_size);
  // Frees the handle of a work, also of one that is not over.
  void (*release)(void* work);
  // Ends all works for good, also those that other functions are about to begin. Returns
  // when the GPU no longer uses their memory, or after 1 s if it cannot be stopped.
  void (*abort)(void* state);
} rankrun_device_backend;

// Defined by the library of a backend, with default visibility. The struct must stay
// valid; its name is that of the file.
const rankrun_device_backend* rankrun_device_backend_entry(void);

// Makes a backend known to this process, for groups that are made from now on. Copies
// the struct and its name. Errors: RANKRUN_INVALID, as rankrun_register_backend.
RANKRUN_API rankrun_status rankrun_register_device_backend(const rankrun_device_backend* backend);

#ifdef __cplusplus
}
#endif
