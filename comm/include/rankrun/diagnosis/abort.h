#pragma once

#include <string>

#include <rankrun/export.h>

namespace rankrun {

class ProcessGroup;

// Ends all calls of this rank on the group, for good and at once: collectives, messages and
// Work under way, in any thread. They throw a DistBackendError, "rank 3 aborted the group:
// <reason>", and touch no tensor afterwards. Calls of the other members end soon with the same
// text, in a DistBackendError or a DistNetworkError. Later calls fail at once with it. Only
// Destroy remains, which after the abort of a world waits for no other rank.
//
// A world means all its groups, and calls of NewGroup and InitDeviceMesh that wait for ranks
// which have not called; SplitGroup, ShrinkGroup and local synchronization wait for their
// time-out. The abort of another group leaves the world usable. RPC has groups of its own,
// which stay usable.
//
// `reason` is one line, of which 400 bytes are used; it may be empty. A second call has no
// effect. On a rank that is no member the call does nothing and logs a warning, or throws
// DistError with RANKRUN_STRICT=1.
//
// Calls end within 50 ms; a MonitoredBarrier when the store answers; calls on GPU memory within
// 1 s if the GPU still runs them. Abort then tells the store, for some seconds if that is stuck.
// Throws DistError if the group is destroyed, and in a fork of its process.
// Thread: any, also while other threads use or destroy the group.
RANKRUN_API void Abort(ProcessGroup& group, const std::string& reason = {});

}  // namespace rankrun
