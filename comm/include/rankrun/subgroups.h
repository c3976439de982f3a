#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rankrun/backend_options.h>
#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/process_group.h>

// Process groups made from members of another group, the parent. Only members of the
// parent make the call. The new group belongs to the parent's context.
namespace rankrun {

struct SubgroupOptions {
  Timeout timeout = {};      // of the call and of the group's operations; no value: the parent's
  std::string backend = {};  // empty, or with RANKRUN_BACKEND: as for the world
  std::string description = {};          // for messages
  std::optional<NcclOptions> nccl = {};  // no value: as the world's
};

// Makes several groups at once. Each list has the members of one group as group
// ranks in `parent`, in the order of their ranks in the new group. All members of
// the parent call it with the same arguments. Returns the group of this rank; if no
// list has this rank, a group with is_member() == false.
// If GPUs of the parent are connected, their connections serve the new groups, which
// use the same GPUs. The ranks then make the call between the same collectives on GPU
// memory of the parent, and a failure breaks the parent.
// Errors: as NewGroup.
// Thread: any; in a context, one call of SplitGroup, ShrinkGroup or NewGroup at a
// time.
RANKRUN_API ProcessGroup& SplitGroup(ProcessGroup& parent,
                                     const std::vector<std::vector<int>>& splits,
                                     const SubgroupOptions& options = {});

// Makes a group of the members of `parent` that are not in `excluded` (group ranks
// in the parent), in the order of the parent. Lets the remaining ranks go on after a
// rank is lost; the text of the error names the lost rank:
//
//   try {
//     group->AllReduce(gradients);
//   } catch (const rankrun::DistError&) {
//     if (group->state() == rankrun::GroupState::kOk) throw;
//     group = &rankrun::ShrinkGroup(*group, {lost});
//   }
//
// Exactly the members that remain call it. The call breaks the parent: members that
// wait there get an error, and then call it, too. Work of the parent must still be
// waited for before its tensors are freed. On a rank that made the call, Destroy of
// the world does not wait for excluded ranks. To make more groups of the remaining
// ranks, use SplitGroup, ShrinkGroup, or NewGroup with local synchronization.
// Errors: as NewGroup; DistMismatchError also if other members have excluded this
// rank; DistError if `excluded` has the rank that serves the store, unless the
// program passed the store; DistNetworkError if an agent has reported a death,
// because it then ends all workers.
// Thread: as SplitGroup; another thread may use the parent. If one waits in the
// parent's MonitoredBarrier, the MonitoredBarrier of other ranks ends only at its
// time-out.
RANKRUN_API ProcessGroup& ShrinkGroup(ProcessGroup& parent, const std::vector<int>& excluded,
                                      const SubgroupOptions& options = {});

}  // namespace rankrun
