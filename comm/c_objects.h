#pragma once

#include <rankrun/c_types.h>

// Collectives of objects: those of objects.h in C, where each is explained. What
// is given is an array for rankrun_bytes_release, NULL if there are none. Peers
// are global ranks; a source may be RANKRUN_ANY_SOURCE.

#ifdef __cplusplus
extern "C" {
#endif

// As many on all ranks; what those of other ranks than `root` hold is not looked at.
RANKRUN_API rankrun_status rankrun_broadcast_objects(rankrun_group* group,
                                                     const rankrun_bytes* objects, size_t count,
                                                     int root, int64_t timeout_ms,
                                                     rankrun_bytes** received);
// One per member, by group rank.
RANKRUN_API rankrun_status rankrun_all_gather_object(rankrun_group* group,
                                                     const rankrun_bytes* object,
                                                     int64_t timeout_ms, rankrun_bytes** received);
// The same on `root`.
RANKRUN_API rankrun_status rankrun_gather_object(rankrun_group* group, const rankrun_bytes* object,
                                                 int root, int64_t timeout_ms,
                                                 rankrun_bytes** received);
// `objects`: one per member on `root`; NULL and 0 elsewhere. Gives one.
RANKRUN_API rankrun_status rankrun_scatter_objects(rankrun_group* group,
                                                   const rankrun_bytes* objects, size_t count,
                                                   int root, int64_t timeout_ms,
                                                   rankrun_bytes** received);
RANKRUN_API rankrun_status rankrun_send_objects(rankrun_group* group, const rankrun_bytes* objects,
                                                size_t count, int destination, int tag,
                                                int64_t timeout_ms);
// As many as were sent; else it gives none of them.
RANKRUN_API rankrun_status rankrun_recv_objects(rankrun_group* group, size_t count, int source,
                                                int tag, int64_t timeout_ms,
                                                rankrun_bytes** received, int* sender);

#ifdef __cplusplus
}
#endif
