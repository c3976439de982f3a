#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/export.h>

// Types that all functions of the C ABI share; rankrun.h describes the ABI.

#ifdef __cplusplus
extern "C" {
#endif

// Raised with each addition. Released enum values never change their meaning.
#define RANKRUN_ABI_VERSION 1
// Returns the version of the loaded library. The program can use the library if
// this is at least RANKRUN_ABI_VERSION.
RANKRUN_API uint32_t rankrun_abi_version(void);

// The exceptions of dist_error.h as numbers. Functions with another return type
// return 0, NULL or -1 after an error, as documented there.
typedef enum rankrun_status {
  RANKRUN_OK = 0,
  RANKRUN_INVALID = 1,      // wrong use; nothing was sent
  RANKRUN_BACKEND = 2,      // the backend failed; the group is broken
  RANKRUN_TIMEOUT = 3,      // ranks are missing after the time-out
  RANKRUN_MISMATCH = 4,     // the calls of the ranks do not match
  RANKRUN_NETWORK = 5,      // a rank or the store is lost
  RANKRUN_STORE = 6,        // the store failed, or a key did not appear in time
  RANKRUN_INTERNAL = 7,     // any other error, such as no memory
  RANKRUN_PROCESS = 8,      // a process of rankrun_spawn has failed
  RANKRUN_REMOTE = 9,       // the method that rankrun_rpc_sync calls has failed, or is unknown
  RANKRUN_INTERRUPTED = 10  // the hook of c/interrupt.h has ended the call
} rankrun_status;

// Returns one line with the failed operation and its cause, for the last failed
// call of this thread; "" if none has failed. Valid until the next failure.
RANKRUN_API const char* rankrun_last_error(void);

// All time-outs are in milliseconds. This one means the time-out of the group
// or store.
#define RANKRUN_DEFAULT_TIMEOUT (-1)

typedef enum rankrun_dtype {
  RANKRUN_FLOAT32 = 0,
  RANKRUN_FLOAT64 = 1,
  RANKRUN_FLOAT16 = 2,
  RANKRUN_BFLOAT16 = 3,
  RANKRUN_INT8 = 4,
  RANKRUN_INT16 = 5,
  RANKRUN_INT32 = 6,
  RANKRUN_INT64 = 7,
  RANKRUN_UINT8 = 8,
  RANKRUN_UINT16 = 9,
  RANKRUN_UINT32 = 10,
  RANKRUN_UINT64 = 11,
  RANKRUN_BOOL = 12,
  RANKRUN_COMPLEX64 = 13,
  RANKRUN_COMPLEX128 = 14,
  RANKRUN_FLOAT8_E4M3 = 15,
  RANKRUN_FLOAT8_E5M2 = 16
} rankrun_dtype;

typedef enum rankrun_device_type { RANKRUN_CPU = 1, RANKRUN_CUDA = 2 } rankrun_device_type;

typedef enum rankrun_op {
  RANKRUN_SUM = 0,
  RANKRUN_AVG = 1,
  RANKRUN_PRODUCT = 2,
  RANKRUN_MIN = 3,
  RANKRUN_MAX = 4,
  RANKRUN_BIT_AND = 5,
  RANKRUN_BIT_OR = 6,
  RANKRUN_BIT_XOR = 7,
  RANKRUN_PREMUL_SUM = 8
} rankrun_op;

// Source of a receive that matches any sender.
#define RANKRUN_ANY_SOURCE (-1)

// Operation of a reduction (reduce_op.h). A NULL pointer means the sum.
typedef struct rankrun_reduce_op {
  double factor;  // of RANKRUN_PREMUL_SUM
  uint8_t kind;   // a rankrun_op
} rankrun_reduce_op;

// View of dense memory that the caller owns and keeps until the work on it is
// complete. `data` is not const even for read-only tensors. The size of this
// struct never changes, because programs keep arrays of it.
typedef struct rankrun_tensor {
  void* data;    // may be NULL if `count` is 0
  size_t count;  // in elements
  size_t row;    // elements per row (entry of the first dimension); 0 means 1
  int32_t device_index;
  uint8_t dtype;        // a rankrun_dtype
  uint8_t device_type;  // a rankrun_device_type; 0: RANKRUN_CPU
  uint16_t reserved;    // 0
} rankrun_tensor;

// Bytes that the library does not interpret.
typedef struct rankrun_bytes {
  void* data;
  size_t size;
} rankrun_bytes;

// Frees a result that a function returned through a `rankrun_bytes**`: one
// struct or an array, with its data. Ignores NULL.
RANKRUN_API void rankrun_bytes_release(rankrun_bytes* bytes);

// Process group, owned by the library until it is destroyed. NULL means the
// world.
typedef struct rankrun_group rankrun_group;
// Handle of an operation, owned by the caller until rankrun_work_release.
typedef struct rankrun_work rankrun_work;
// Client of a key-value store, owned by the caller until rankrun_store_release.
typedef struct rankrun_store rankrun_store;

#ifdef __cplusplus
}
#endif
