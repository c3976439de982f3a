#pragma once

#include <rankrun/c/types.h>

// C form of the collectives of process_group.h, which describes them. A list is
// a pointer and a count. `root` is a global rank; rankrun_to_global_rank
// converts a group rank.
// If `work` is NULL, the call returns when the collective is complete.
// Otherwise it returns a handle before that, but still waits for a blocking
// call of another thread on the group; after an error *work is NULL.

#ifdef __cplusplus
extern "C" {
#endif

RANKRUN_API rankrun_status rankrun_all_reduce(rankrun_group* group, const rankrun_tensor* tensor,
                                              const rankrun_reduce_op* op, int64_t timeout_ms,
                                              rankrun_work** work);
RANKRUN_API rankrun_status rankrun_reduce(rankrun_group* group, const rankrun_tensor* tensor,
                                          int root, const rankrun_reduce_op* op, int64_t timeout_ms,
                                          rankrun_work** work);
RANKRUN_API rankrun_status rankrun_broadcast(rankrun_group* group, const rankrun_tensor* tensor,
                                             int root, int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_all_gather(rankrun_group* group, const rankrun_tensor* outputs,
                                              size_t outputs_count, const rankrun_tensor* input,
                                              int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_all_gather_into(rankrun_group* group,
                                                   const rankrun_tensor* output,
                                                   const rankrun_tensor* input, int64_t timeout_ms,
                                                   rankrun_work** work);
RANKRUN_API rankrun_status rankrun_gather(rankrun_group* group, const rankrun_tensor* outputs,
                                          size_t outputs_count, const rankrun_tensor* input,
                                          int root, int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_scatter(rankrun_group* group, const rankrun_tensor* output,
                                           const rankrun_tensor* inputs, size_t inputs_count,
                                           int root, int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_reduce_scatter(rankrun_group* group,
                                                  const rankrun_tensor* output,
                                                  const rankrun_tensor* inputs, size_t inputs_count,
                                                  const rankrun_reduce_op* op, int64_t timeout_ms,
                                                  rankrun_work** work);
RANKRUN_API rankrun_status rankrun_reduce_scatter_from(rankrun_group* group,
                                                       const rankrun_tensor* output,
                                                       const rankrun_tensor* input,
                                                       const rankrun_reduce_op* op,
                                                       int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_all_to_all(rankrun_group* group, const rankrun_tensor* outputs,
                                              size_t outputs_count, const rankrun_tensor* inputs,
                                              size_t inputs_count, int64_t timeout_ms,
                                              rankrun_work** work);
// Splits are numbers of rows, one per rank; NULL and 0 mean equal parts.
RANKRUN_API rankrun_status rankrun_all_to_all_single(
    rankrun_group* group, const rankrun_tensor* output, const rankrun_tensor* input,
    const size_t* output_splits, size_t output_splits_count, const size_t* input_splits,
    size_t input_splits_count, int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_barrier(rankrun_group* group, int64_t timeout_ms,
                                           rankrun_work** work);
RANKRUN_API rankrun_status rankrun_barrier_on(rankrun_group* group, int32_t device_index,
                                              int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_monitored_barrier(rankrun_group* group, int wait_all_ranks,
                                                     int64_t timeout_ms);

// Chooses the CUDA stream (a cudaStream_t) for this thread's calls on GPU memory; NULL,
// which each thread begins with, means the default stream. Returns the previous one.
RANKRUN_API void* rankrun_set_stream(void* stream);

// Registers memory of a GPU with NCCL until it is released: RegisteredMemory of
// gpu.h. Returns NULL after an error. The release ignores NULL.
typedef struct rankrun_registered_memory rankrun_registered_memory;
RANKRUN_API rankrun_registered_memory* rankrun_register_memory(rankrun_group* group,
                                                               const rankrun_tensor* memory);
RANKRUN_API void rankrun_registered_memory_release(rankrun_registered_memory* memory);

// Waits until the operation is complete. Returns its status. For an operation on GPU
// memory, lets later work in this thread's stream wait instead, and returns at once.
RANKRUN_API rankrun_status rankrun_work_wait(const rankrun_work* work);
// As rankrun_work_wait, but returns RANKRUN_OK with *done 0 if the operation is
// not complete after `limit_ms`.
RANKRUN_API rankrun_status rankrun_work_wait_for(const rankrun_work* work, int64_t limit_ms,
                                                 int* done);
// Returns whether the operation is complete, successful or failed. Never waits.
RANKRUN_API int rankrun_work_test(const rankrun_work* work);
// Calls `done` once when the operation is complete, possibly from another
// thread. `done` must not wait for other work of the same group.
RANKRUN_API rankrun_status rankrun_work_then(const rankrun_work* work, void (*done)(void* context),
                                             void* context);
// Makes one handle for several operations. `works` stay the caller's.
RANKRUN_API rankrun_status rankrun_work_coalesce(const rankrun_work* const* works, size_t count,
                                                 rankrun_work** all);
// Returns the global rank of the sender of a completed receive, -1 for other
// work.
RANKRUN_API int rankrun_work_source(const rankrun_work* work);
RANKRUN_API uint64_t rankrun_work_sequence(const rankrun_work* work);  // from 1; 0: none
// Releases the handle without cancelling the operation: its tensors stay in use
// until it is complete. Ignores NULL.
RANKRUN_API void rankrun_work_release(rankrun_work* work);

#ifdef __cplusplus
}
#endif
