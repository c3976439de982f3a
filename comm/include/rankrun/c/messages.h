#pragma once

#include <rankrun/c/types.h>

// C form of the messages between two ranks of process_group.h, which describes
// them. Peers are global ranks.

#ifdef __cplusplus
extern "C" {
#endif

RANKRUN_API rankrun_status rankrun_send(rankrun_group* group, const rankrun_tensor* tensor,
                                        int destination, int tag, int64_t timeout_ms);
// Sets *sender, unless `sender` is NULL, to the sender's global rank (-1: no
// member).
RANKRUN_API rankrun_status rankrun_recv(rankrun_group* group, const rankrun_tensor* tensor,
                                        int source, int tag, int64_t timeout_ms, int* sender);
RANKRUN_API rankrun_status rankrun_isend(rankrun_group* group, const rankrun_tensor* tensor,
                                         int destination, int tag, rankrun_work** work);
RANKRUN_API rankrun_status rankrun_irecv(rankrun_group* group, const rankrun_tensor* tensor,
                                         int source, int tag, rankrun_work** work);

// One message of a batch. The size of this struct never changes, because
// programs keep arrays of it.
typedef struct rankrun_message {
  rankrun_tensor tensor;
  int32_t is_send;  // 0: receive
  int32_t peer;     // for a receive also RANKRUN_ANY_SOURCE
  int32_t tag;
  uint32_t reserved;  // 0
} rankrun_message;
// Starts all messages. `works` has room for `count` handles. After an error all
// of `works` are NULL, and messages that were already started continue.
RANKRUN_API rankrun_status rankrun_batch(rankrun_group* group, const rankrun_message* messages,
                                         size_t count, rankrun_work** works);

// Gives a view of a tensor of another framework, without a copy (dlpack.h). The
// caller still owns `managed`.
struct DLManagedTensor;
RANKRUN_API rankrun_status rankrun_from_dlpack(const struct DLManagedTensor* managed,
                                               rankrun_tensor* tensor);
// Gives `tensor` to another framework. `release`, unless NULL, is called once
// with `context` when the receiver is done, from any thread.
RANKRUN_API rankrun_status rankrun_to_dlpack(const rankrun_tensor* tensor,
                                             void (*release)(void* context), void* context,
                                             struct DLManagedTensor** managed);

#ifdef __cplusplus
}
#endif
