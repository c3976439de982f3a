#pragma once

#include <rankrun/c/types.h>

// C form of objects.h, which describes the functions. Received objects are an
// array that the caller frees with rankrun_bytes_release; NULL if there are
// none. Peers are global ranks; a source may be RANKRUN_ANY_SOURCE.

#ifdef __cplusplus
extern "C" {
#endif

// `count` is equal on all ranks. Only the objects of `root` are read.
RANKRUN_API rankrun_status rankrun_broadcast_objects(rankrun_group* group,
                                                     const rankrun_bytes* objects, size_t count,
                                                     int root, int64_t timeout_ms,
                                                     rankrun_bytes** received);
// Gives one object per member, by group rank.
RANKRUN_API rankrun_status rankrun_all_gather_object(rankrun_group* group,
                                                     const rankrun_bytes* object,
                                                     int64_t timeout_ms, rankrun_bytes** received);
// Gives one object per member on `root`, none on other ranks.
RANKRUN_API rankrun_status rankrun_gather_object(rankrun_group* group, const rankrun_bytes* object,
                                                 int root, int64_t timeout_ms,
                                                 rankrun_bytes** received);
// `objects` has one object per member on `root`, and is NULL with `count` 0 on
// other ranks. Gives one object.
RANKRUN_API rankrun_status rankrun_scatter_objects(rankrun_group* group,
                                                   const rankrun_bytes* objects, size_t count,
                                                   int root, int64_t timeout_ms,
                                                   rankrun_bytes** received);
RANKRUN_API rankrun_status rankrun_send_objects(rankrun_group* group, const rankrun_bytes* objects,
                                                size_t count, int destination, int tag,
                                                int64_t timeout_ms);
// `count` must be the number of objects sent; otherwise the call fails and
// gives none.
RANKRUN_API rankrun_status rankrun_recv_objects(rankrun_group* group, size_t count, int source,
                                                int tag, int64_t timeout_ms,
                                                rankrun_bytes** received, int* sender);

#ifdef __cplusplus
}
#endif
