#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <rankrun/export.h>
#include <rankrun/process_group.h>

// Collectives of objects: bytes whose size only their sender knows. What the
// bytes mean is the program's business; nothing in them is ever executed.
// CBOR is what other languages read as well: ToCbor and FromCbor of cbor.h.
//
// All block. Sizes differ between ranks as they like, up to kMaxObjectBytes; a
// larger one is a DistError, on all ranks. A rank that lacks the memory for what
// comes gets a DistBackendError, and tells who waits for it as if it had a bad
// argument. A time-out is that of the whole call. Otherwise errors, timeouts, ranks and groups
// that this rank is no member of are as for the collectives of ProcessGroup.
namespace rankrun {

using Object = std::vector<std::byte>;
inline constexpr std::size_t kMaxObjectBytes = std::size_t{1} << 30;

// Everybody's `objects` become those of `root`; as many on all ranks.
RANKRUN_API void BroadcastObjects(ProcessGroup& group, std::span<Object> objects, Peer root,
                                  Timeout timeout = {});
// The objects of all ranks, by group rank.
RANKRUN_API std::vector<Object> AllGatherObject(ProcessGroup& group, const Object& object,
                                                Timeout timeout = {});
// The same on `root`; empty elsewhere.
RANKRUN_API std::vector<Object> GatherObject(ProcessGroup& group, const Object& object,
                                             Peer root = GlobalRank{0}, Timeout timeout = {});
// objects[rank] of `root`, where there is one per rank; it is empty elsewhere.
RANKRUN_API Object ScatterObjects(ProcessGroup& group, std::span<const Object> objects,
                                  Peer root = GlobalRank{0}, Timeout timeout = {});

// One after the other; the receiver asks for as many as were sent. If not, its
// call is a DistError that tells both numbers, and so is the sender's, unless what
// it sends is so small that it was on its way already. Nobody gets these objects,
// and the group is as before.
RANKRUN_API void SendObjects(ProcessGroup& group, std::span<const Object> objects, Peer destination,
                             int tag = 0, Timeout timeout = {});
// `objects` are filled; returns the sender's global rank (-1: no member).
RANKRUN_API int RecvObjects(ProcessGroup& group, std::span<Object> objects, Source source = {},
                            int tag = 0, Timeout timeout = {});

}  // namespace rankrun
