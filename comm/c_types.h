#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rankrun/export.h>

// What all functions of the C ABI share: see rankrun.h.

#ifdef __cplusplus
extern "C" {
#endif

// Raised when something is added; a number that is out is never used again.
#define RANKRUN_ABI_VERSION 1
// Of the library that is loaded: good if not below RANKRUN_ABI_VERSION.
RANKRUN_API uint32_t rankrun_abi_version(void);

// The exceptions of dist_error.h. Functions that return something else return 0,
// NULL or -1 after an error, as they say.
typedef enum rankrun_status {
  RANKRUN_OK = 0,
  RANKRUN_INVALID = 1,   // wrong use: nothing was sent
  RANKRUN_BACKEND = 2,   // the backend could not do it: the group is broken
  RANKRUN_TIMEOUT = 3,   // ranks did not come in time
  RANKRUN_MISMATCH = 4,  // ranks called what does not fit together
  RANKRUN_NETWORK = 5,   // a rank or the store is lost
  RANKRUN_STORE = 6,     // the store failed; of a store: a key did not come in time
  RANKRUN_INTERNAL = 7   // anything else, such as memory that is not there
} rankrun_status;

// One line that says what failed and why: of the last call of this thread that
// failed, "" before. Valid until the next one fails.
RANKRUN_API const char* rankrun_last_error(void);

// Time-outs are milliseconds. This one: what the group or store was made with.
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

// Whom to receive from: whoever sends first.
#define RANKRUN_ANY_SOURCE (-1)

// How to reduce, see reduce_op.h. NULL instead of one: the sum.
typedef struct rankrun_reduce_op {
  double factor;  // of RANKRUN_PREMUL_SUM
  uint8_t kind;   // a rankrun_op
} rankrun_reduce_op;

// Dense memory of the caller, who keeps it until the work on it is complete.
// What is only read is not const here, either. Has its size for ever, as it
// lies in arrays.
typedef struct rankrun_tensor {
  void* data;    // may be NULL if `count` is 0
  size_t count;  // elements, not bytes
  size_t row;    // elements of one entry of the first dimension; 0: 1
  int32_t device_index;
  uint8_t dtype;        // a rankrun_dtype
  uint8_t device_type;  // a rankrun_device_type; 0: RANKRUN_CPU
  uint16_t reserved;    // 0
} rankrun_tensor;

// Bytes that mean what the program likes.
typedef struct rankrun_bytes {
  void* data;
  size_t size;
} rankrun_bytes;

// Frees what a function has given as `rankrun_bytes**`: one or an array, with
// all that it points to. NULL is nothing.
RANKRUN_API void rankrun_bytes_release(rankrun_bytes* bytes);

// Ranks that work together: owned by the library, until it is destroyed. NULL
// instead of one: the world.
typedef struct rankrun_group rankrun_group;
// An operation under way: the caller's, until rankrun_work_release.
typedef struct rankrun_work rankrun_work;
// A client of a key-value store: the caller's, until rankrun_store_release.
typedef struct rankrun_store rankrun_store;

#ifdef __cplusplus
}
#endif
