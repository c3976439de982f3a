#pragma once

#include <rankrun/c/types.h>

// C form of store.h, which describes the functions. Keys are text. A time-out
// of 0 checks once. The caller frees returned values with
// rankrun_bytes_release.

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rankrun_tcp_store_options {
  uint32_t size;             // as in rankrun_init_options
  uint16_t port;             // 29500; 0: any free port, for the server only
  uint16_t is_server;        // 0
  int32_t world_size;        // -1: not given
  int32_t wait_for_workers;  // 1
  int64_t timeout_ms;        // 300000
  const char* host;          // "127.0.0.1"
  int32_t listen_fd;         // -1: none
  int32_t multi_tenant;      // 0
} rankrun_tcp_store_options;
RANKRUN_API rankrun_status rankrun_tcp_store_options_default(rankrun_tcp_store_options* options);

RANKRUN_API rankrun_status rankrun_tcp_store(const rankrun_tcp_store_options* options,
                                             rankrun_store** store);
RANKRUN_API rankrun_status rankrun_file_store(const char* path, const char* run_id,
                                              int64_t timeout_ms, rankrun_store** store);
// As above, with the `world_size` of FileStore, whose last user removes the file.
RANKRUN_API rankrun_status rankrun_file_store_of_workers(const char* path, const char* run_id,
                                                         int32_t world_size, int64_t timeout_ms,
                                                         rankrun_store** store);
RANKRUN_API rankrun_status rankrun_hash_store(int64_t timeout_ms, rankrun_store** store);
// The caller may release `below` before the new store.
RANKRUN_API rankrun_status rankrun_prefix_store(const char* prefix, const rankrun_store* below,
                                                rankrun_store** store);
RANKRUN_API rankrun_status rankrun_store_clone(const rankrun_store* store, rankrun_store** clone);
// Ignores NULL.
RANKRUN_API void rankrun_store_release(rankrun_store* store);
// Returns the actual port of a TCP store, 0 for other stores.
RANKRUN_API uint16_t rankrun_store_port(const rankrun_store* store);
// Returns 1 if append, multi_get and multi_set are operations of the store itself;
// 0 also if `store` is NULL.
RANKRUN_API int rankrun_store_has_extended_api(const rankrun_store* store);
RANKRUN_API rankrun_status rankrun_store_set_timeout(rankrun_store* store, int64_t timeout_ms);
RANKRUN_API int64_t rankrun_store_timeout(const rankrun_store* store);  // -1: `store` is NULL

RANKRUN_API rankrun_status rankrun_store_set(rankrun_store* store, const char* key,
                                             const void* value, size_t size);
RANKRUN_API rankrun_status rankrun_store_get(rankrun_store* store, const char* key,
                                             int64_t timeout_ms, rankrun_bytes** value);
// `sum` may be NULL.
RANKRUN_API rankrun_status rankrun_store_add(rankrun_store* store, const char* key, int64_t delta,
                                             int64_t* sum);
RANKRUN_API rankrun_status rankrun_store_check(rankrun_store* store, const char* const* keys,
                                               size_t count, int* exist);
RANKRUN_API rankrun_status rankrun_store_wait(rankrun_store* store, const char* const* keys,
                                              size_t count, int64_t timeout_ms);
RANKRUN_API rankrun_status rankrun_store_barrier(rankrun_store* store, const char* key,
                                                 int32_t world_size, int64_t timeout_ms);
// Gives the resulting value. `swapped` may be NULL.
RANKRUN_API rankrun_status rankrun_store_compare_set(rankrun_store* store, const char* key,
                                                     const rankrun_bytes* expected,
                                                     const rankrun_bytes* desired,
                                                     rankrun_bytes** value, int* swapped);
// `existed` may be NULL.
RANKRUN_API rankrun_status rankrun_store_delete(rankrun_store* store, const char* key,
                                                int* existed);
RANKRUN_API rankrun_status rankrun_store_append(rankrun_store* store, const char* key,
                                                const void* value, size_t size);
// Gives the values in the order of `keys`.
RANKRUN_API rankrun_status rankrun_store_multi_get(rankrun_store* store, const char* const* keys,
                                                   size_t count, int64_t timeout_ms,
                                                   rankrun_bytes** values);
RANKRUN_API rankrun_status rankrun_store_multi_set(rankrun_store* store, const char* const* keys,
                                                   const rankrun_bytes* values, size_t count);
RANKRUN_API rankrun_status rankrun_store_num_keys(rankrun_store* store, int64_t* count);
// Gives the names, each followed by a zero byte that its size does not count.
RANKRUN_API rankrun_status rankrun_store_list_keys(rankrun_store* store, rankrun_bytes** keys,
                                                   size_t* count);

RANKRUN_API rankrun_status rankrun_store_queue_push(rankrun_store* store, const char* key,
                                                    const void* value, size_t size);
// Waits for a value. With a time-out of 0, *value is NULL if the queue is
// empty.
RANKRUN_API rankrun_status rankrun_store_queue_pop(rankrun_store* store, const char* key,
                                                   int64_t timeout_ms, rankrun_bytes** value);
RANKRUN_API rankrun_status rankrun_store_queue_length(rankrun_store* store, const char* key,
                                                      int64_t* length);

#ifdef __cplusplus
}
#endif
