#pragma once

#include <rankrun/c_types.h>

// The collectives of process_group.h in C, where each is explained. Lists are
// a pointer and a number. `root` is a global rank: rankrun_to_global_rank makes
// one of a group rank.
// `work`: NULL: it returns when it is complete. Else it returns at once, or after
// the call of another thread that is to wait, and gives a handle; after an error
// *work is NULL.

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
// Splits: numbers of rows, one per rank; NULL and 0: equal parts.
RANKRUN_API rankrun_status rankrun_all_to_all_single(
    rankrun_group* group, const rankrun_tensor* output, const rankrun_tensor* input,
    const size_t* output_splits, size_t output_splits_count, const size_t* input_splits,
    size_t input_splits_count, int64_t timeout_ms, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_barrier(rankrun_group* group, int64_t timeout_ms,
                                           rankrun_work** work);
RANKRUN_API rankrun_status rankrun_monitored_barrier(rankrun_group* group, int wait_all_ranks,
                                                     int64_t timeout_ms);

// Waits for the end and returns how it went.
RANKRUN_API rankrun_status rankrun_work_wait(const rankrun_work* work);
// The same, or RANKRUN_OK with *done 0 if it is still under way after `limit_ms`.
RANKRUN_API rankrun_status rankrun_work_wait_for(const rankrun_work* work, int64_t limit_ms,
                                                 int* done);
// Whether it has ended, well or badly; never waits.
RANKRUN_API int rankrun_work_test(const rankrun_work* work);
// Calls `done` once after the end, maybe from another thread; it must not wait
// for other work of the same group.
RANKRUN_API rankrun_status rankrun_work_then(const rankrun_work* work, void (*done)(void* context),
                                             void* context);
// Of a receive that has ended: the global rank of the sender. Else -1.
RANKRUN_API int rankrun_work_source(const rankrun_work* work);
RANKRUN_API uint64_t rankrun_work_sequence(const rankrun_work* work);  // from 1; 0: has none
// Does not cancel it: the tensors stay in use until it ends. NULL is nothing.
RANKRUN_API void rankrun_work_release(rankrun_work* work);

#ifdef __cplusplus
}
#endif
