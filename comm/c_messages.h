#pragma once

#include <rankrun/c_types.h>

// Messages between two ranks: those of process_group.h in C, where each is
// explained. Peers are global ranks.

#ifdef __cplusplus
extern "C" {
#endif

RANKRUN_API rankrun_status rankrun_send(rankrun_group* group, const rankrun_tensor* tensor,
                                        int destination, int tag, int64_t timeout_ms);
// `sender`, unless NULL: its global rank (-1: no member).
RANKRUN_API rankrun_status rankrun_recv(rankrun_group* group, const rankrun_tensor* tensor,
                                        int source, int tag, int64_t timeout_ms, int* sender);
RANKRUN_API rankrun_status rankrun_isend(rankrun_group* group, const rankrun_tensor* tensor,
                                         int destination, int tag, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_irecv(rankrun_group* group, const rankrun_tensor* tensor,
                                         int source, int tag, rankrun_work** work);

// One message of a batch. Has its size for ever, as it lies in arrays.
typedef struct rankrun_message {
  rankrun_tensor tensor;
  int32_t is_send;  // 0: a receive
  int32_t peer;     // of a receive also RANKRUN_ANY_SOURCE
  int32_t tag;
  uint32_t reserved;  // 0
} rankrun_message;
// Starts all of them; `works` has room for `count` handles. After an error all
// of `works` are NULL; messages that had been started go on.
RANKRUN_API rankrun_status rankrun_batch(rankrun_group* group, const rankrun_message* messages,
                                         size_t count, rankrun_work** works);

// A tensor of another framework, without a copy: see dlpack.h. `managed` stays
// the caller's.
struct DLManagedTensor;
RANKRUN_API rankrun_status rankrun_from_dlpack(const struct DLManagedTensor* managed,
                                               rankrun_tensor* tensor);
// The other way: `release`, unless NULL, is called with `context` once when the
// taker is done, from any thread.
RANKRUN_API rankrun_status rankrun_to_dlpack(const rankrun_tensor* tensor,
                                             void (*release)(void* context), void* context,
                                             struct DLManagedTensor** managed);

#ifdef __cplusplus
}
#endif
