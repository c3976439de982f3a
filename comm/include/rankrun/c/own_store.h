#pragma once

#include <rankrun/c/store.h>

// A store of the program's own, as a class that is derived from Store in C++: store_base.h says
// which threads call its functions and how long they may wait.

#ifdef __cplusplus
extern "C" {
#endif

// Result of a function of the store: its value, or the text of its error.
typedef struct rankrun_store_answer rankrun_store_answer;
// Sets the bytes, which it copies; without it they are none. In a function of the store only.
RANKRUN_API rankrun_status rankrun_store_answer_set(rankrun_store_answer* answer, const void* data,
                                                    size_t size);

// Each function returns RANKRUN_OK; RANKRUN_STORE after the time-out, or if the store cannot do
// it; RANKRUN_NETWORK if the store is lost; RANKRUN_INVALID for wrong use. Another status counts as
// RANKRUN_STORE. Arguments are valid until it returns. All functions are required, but `destroy`.
// A time-out of 0 checks once.
typedef struct rankrun_store_functions {
  uint32_t size;      // sizeof this struct
  uint32_t reserved;  // 0
  void* context;      // first argument of each function
  rankrun_status (*set)(void* context, const char* key, const rankrun_bytes* value,
                        rankrun_store_answer* answer);
  // Waits until the key exists. Answers with its value.
  rankrun_status (*get)(void* context, const char* key, int64_t timeout_ms,
                        rankrun_store_answer* answer);
  rankrun_status (*add)(void* context, const char* key, int64_t delta, int64_t* sum,
                        rankrun_store_answer* answer);
  rankrun_status (*check)(void* context, const char* const* keys, size_t count, int* exist,
                          rankrun_store_answer* answer);
  rankrun_status (*wait)(void* context, const char* const* keys, size_t count, int64_t timeout_ms,
                         rankrun_store_answer* answer);
  // Answers with the value of the key afterwards.
  rankrun_status (*compare_set)(void* context, const char* key, const rankrun_bytes* expected,
                                const rankrun_bytes* desired, int* swapped,
                                rankrun_store_answer* answer);
  rankrun_status (*remove)(void* context, const char* key, int* existed,
                           rankrun_store_answer* answer);
  rankrun_status (*num_keys)(void* context, int64_t* count, rankrun_store_answer* answer);
  // Frees the context, after the last call of the others: once the program has released the store
  // and the library no longer uses it. NULL: nothing to free.
  void (*destroy)(void* context);
} rankrun_store_functions;

// Copies `functions`. After an error `destroy` is not called.
RANKRUN_API rankrun_status rankrun_own_store(const rankrun_store_functions* functions,
                                             int64_t timeout_ms, rankrun_store** store);

#ifdef __cplusplus
}
#endif
