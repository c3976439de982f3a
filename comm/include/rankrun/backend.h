#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rankrun/c/call_kind.h>
#include <rankrun/c/types.h>

// Interface for backends that are written outside of rankrun, in C.
//
// Such a backend connects each pair of ranks by two connections, which move
// bytes in both directions. On top of them the library implements all
// collectives and messages, compares calls, keeps time-outs and notices deaths.
// The backend may carry out some collectives itself, beside these connections.
// Tensors are in CPU memory. examples/backend has a complete backend.
//
// A program can use the backend "x" after rankrun_register_backend, or if there
// is a library librankrun_x.so (RANKRUN_PLUGIN_DIR in distributed.h) that defines
// rankrun_backend_entry. It stays loaded until the process ends.

#ifdef __cplusplus
extern "C" {
#endif

#define RANKRUN_BACKEND_VERSION 1

// Process group that is to be connected. Valid during the function that gets it.
typedef struct rankrun_backend_group {
  uint32_t size;                // sizeof this struct in the library
  int32_t rank;                 // of this process in the group
  int32_t world_size;           // number of ranks in the group, at least 1
  uint32_t reserved;            // 0
  const int32_t* global_ranks;  // by group rank; for texts
  const char* const* hosts;     // by group rank; equal texts: can share memory
  const char* address;          // at which other hosts reach this one
  const char* interfaces;       // value of GLOO_SOCKET_IFNAME; "": not set
  int64_t timeout_ms;           // within which `connect` should return
  // Store for what the ranks tell each other; the library owns it. It has only
  // keys of this group. A wait in it ends when a rank has died, but not when a
  // rank cannot connect: wait for a short time only, then ask is_cancelled.
  rankrun_store* store;
  // Returns 1 if another rank has died or cannot connect: the function should then
  // return an error. Called by its thread only.
  int (*is_cancelled)(const struct rankrun_backend_group* group);
  void* internal;  // of the library
} rankrun_backend_group;

// One end of a connection. The backend keeps `state` valid until the library
// calls `close`. The size of this struct never changes.
typedef struct rankrun_connection {
  void* state;  // argument of the functions below; not NULL
  // Descriptor for poll(2), of this connection alone: readable when `receive`
  // has data, the end of data or an error, writable when `send` takes data.
  int32_t fd;
  uint32_t reserved;  // 0
} rankrun_connection;

// Collective that the backend may carry out itself, with the blocks of its kind (call_kind.h).
// Valid during the function that gets it.
typedef struct rankrun_backend_call {
  uint32_t size;     // sizeof this struct in the library
  uint8_t kind;      // a rankrun_call_kind up to RANKRUN_CALL_BARRIER
  uint8_t dtype;     // a rankrun_dtype; in a reduction complex elements are pairs of floats
  uint8_t op;        // of a reduction: a rankrun_op, but not RANKRUN_AVG or RANKRUN_PREMUL_SUM
  uint8_t reserved;  // 0
  int32_t divisor;   // of RANKRUN_SUM: divides the final sum; 1: none
  int32_t root;      // group rank; -1: none
  uint64_t number;   // of the call in the group
  const rankrun_bytes* outputs;
  const rankrun_bytes* inputs;
  size_t output_count;
  size_t input_count;
  // Returns 1 if the call cannot succeed any more: a rank has failed or has died, or the time-out
  // has passed. A rank that waits for others asks at least every 10 ms, which also answers them.
  // Called by the thread of `run` only.
  int (*is_cancelled)(const struct rankrun_backend_call* call);
  void* internal;  // of the library
} rankrun_backend_call;

// No function may throw. Any thread may call them; calls for one connection, and
// for one group, never overlap. Later versions have more members at the end.
typedef struct rankrun_backend {
  uint32_t size;     // sizeof this struct
  uint32_t version;  // RANKRUN_BACKEND_VERSION
  const char* name;  // of small letters, digits and _
  void* context;     // argument of `connect`; may be NULL

  // Connects this rank with all others, which call it, too. Sets connections
  // 2 * r and 2 * r + 1 to those with rank r; on rank r, the same two numbers of
  // this rank are the other ends. All begin as {NULL, -1, 0}, and those of this
  // rank stay so.
  // After an error it has closed what it opened, and has written a text without
  // a final period, such as "bind: Address already in use", to `reason`, which
  // holds `reason_size` bytes. RANKRUN_TIMEOUT and RANKRUN_NETWORK become a
  // DistTimeoutError and a DistNetworkError; others become a DistBackendError.
  rankrun_status (*connect)(void* context, const rankrun_backend_group* group,
                            rankrun_connection* connections, char* reason, size_t reason_size);

  // Send from and receive into `count` parts of memory, in order, without
  // waiting. The first part is never empty. Return the number of bytes, at least
  // 1; -EAGAIN if none can be moved now, -EINTR to be called again at once, and
  // another negative number of errno if the connection is lost. `receive` returns
  // 0 after the last byte of a peer that has closed the connection.
  ssize_t (*send)(void* state, const struct iovec* parts, int count);
  ssize_t (*receive)(void* state, const struct iovec* parts, int count);

  // Ends the connection in both directions. Only `close` follows.
  void (*shut_down)(void* state);
  // Frees the connection. The peer can still receive all bytes that were sent.
  void (*close)(void* state);

  // The functions above are required. The others are for collectives of the backend's own: it
  // defines all of them or none.

  // Follows `connect`. Sets `group_state`, the argument of the others, which may be NULL. Waits for
  // other ranks as `connect` does. Errors: as `connect`.
  rankrun_status (*open_group)(void* context, const rankrun_backend_group* group,
                               void** group_state, char* reason, size_t reason_size);
  // Returns 1 if the backend carries out such a call, 0 if the library shall do it. The ranks must
  // decide alike: if they differ, the call fails.
  int (*takes)(void* group_state, const rankrun_backend_call* call);
  // Carries out a call. All ranks have made it, with the same kind, dtype, op and root, and this
  // rank's sizes are those that the others expect. Once is_cancelled returns 1, `run` soon returns
  // any error. An error breaks the group on all ranks.
  rankrun_status (*run)(void* group_state, const rankrun_backend_call* call, char* reason,
                        size_t reason_size);
  // Frees the state. Other ranks may still be in `run` for the last call.
  void (*close_group)(void* group_state);
} rankrun_backend;

// Defined by the library of a backend, with default visibility. The struct must
// stay valid; its name is that of the file.
const rankrun_backend* rankrun_backend_entry(void);

// Makes a backend known to this process, for groups that are made from now on.
// Copies the struct and its name.
// Errors: RANKRUN_INVALID for a name that is taken, by rankrun too, a struct of
// another version, or an absent function.
RANKRUN_API rankrun_status rankrun_register_backend(const rankrun_backend* backend);

#ifdef __cplusplus
}
#endif
