#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <rankrun/export.h>
#include <rankrun/process_group.h>

// Collectives and messages of objects: bytes whose size only their sender
// knows. The library does not interpret them. ToCbor and FromCbor of cbor.h
// give objects that programs in other languages can read.
//
// All functions block. Sizes may differ between ranks. An object above
// kMaxObjectBytes is a DistError on all ranks. A rank that lacks the memory for
// the objects gets a DistBackendError; on the ranks that wait for it the call
// fails as after a bad argument. A time-out limits the whole call. Otherwise
// errors, time-outs and groups without this rank are as for ProcessGroup.
namespace rankrun {

using Object = std::vector<std::byte>;
// Largest size of one object in bytes.
inline constexpr size_t kMaxObjectBytes = size_t{1} << 30;

// Copies the objects of `root` to `objects` of every rank. All ranks pass the
// same number of objects.
RANKRUN_API void BroadcastObjects(ProcessGroup& group, std::span<Object> objects, Peer root,
                                  Timeout timeout = {});
// Returns the objects of all ranks, by group rank.
RANKRUN_API std::vector<Object> AllGatherObject(ProcessGroup& group, const Object& object,
                                                Timeout timeout = {});
// As AllGatherObject on `root`; returns an empty list on other ranks.
RANKRUN_API std::vector<Object> GatherObject(ProcessGroup& group, const Object& object,
                                             Peer root = GlobalRank{0}, Timeout timeout = {});
// Returns objects[group rank of this rank] of `root`. On `root` there is one
// object per rank; on other ranks `objects` is empty.
RANKRUN_API Object ScatterObjects(ProcessGroup& group, std::span<const Object> objects,
                                  Peer root = GlobalRank{0}, Timeout timeout = {});

// Sends all objects as one transfer; the receiver must ask for the same number.
// If the numbers differ, the receiver's call throws a DistError with both. So
// does the sender's, unless the objects were small enough to be buffered
// already. The objects are dropped and the group stays usable.
RANKRUN_API void SendObjects(ProcessGroup& group, std::span<const Object> objects, Peer destination,
                             int tag = 0, Timeout timeout = {});
// Fills `objects`. Returns the sender's global rank; -1 if this rank is not a
// member.
RANKRUN_API int RecvObjects(ProcessGroup& group, std::span<Object> objects, Source source = {},
                            int tag = 0, Timeout timeout = {});

}  // namespace rankrun
