#include "comm/world/live_groups.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/roll_call.h"
#include "comm/group/process_group_access.h"

namespace rankrun::comm {
namespace {

// Time-out of the store for the end of the meetings.
constexpr std::chrono::milliseconds kStorePatience{1000};

std::string ByRank(const Group& group, const std::string& how) {
  return RanksInWords({group.identity().global_rank}) + " " + how;
}

// Also ends a first meeting, to which this rank has not come.
void EndMeetings(Group& world, std::shared_ptr<StoreBarrier> meetings, const std::string& how) {
  auto store = world.store().CloneWith(kStorePatience, kStorePatience);
  if (!store) return;
  if (meetings == nullptr) meetings = MakeMeetings(world.identity(), **store);
  meetings->End(**store, {ErrorCode::kSystem, ByRank(world, how)});
}

}  // namespace

std::shared_ptr<StoreBarrier> MakeMeetings(const GroupIdentity& world, store::Store& store) {
  return std::make_shared<StoreBarrier>(store, world.key_prefix + "/meeting", world.group_rank,
                                        world.global_ranks);
}

void LiveGroups::Add(const ProcessGroup& handle, Group& group) {
  State& state = state_.Get();
  MutexLock lock(state.mutex);
  state.entries.push_back({&handle, &group});
  if (state.world_ended_by.empty() || !group.is_member()) return;
  const std::string how = state.world_ended_by;
  lock.Unlock();  // the store may be slow
  group.End(how);
}

void LiveGroups::Remove(const ProcessGroup& handle) {
  State& state = state_.Get();
  MutexLock lock(state.mutex);
  while (state.aborts > 0) state.changed.Wait(state.mutex);
  std::erase_if(state.entries, [&](const Entry& one) { return one.handle == &handle; });
  if (state.entries.empty()) state.world_ended_by.clear();
}

void LiveGroups::SetMeetings(std::shared_ptr<StoreBarrier> meetings) {
  State& state = state_.Get();
  MutexLock lock(state.mutex);
  state.meetings = std::move(meetings);
}

// Returns the groups, which Remove keeps until the abort is no longer under way.
std::optional<LiveGroups::Ends> LiveGroups::Take(State& state, const ProcessGroup& handle,
                                                 const std::string& how) {
  MutexLock lock(state.mutex);
  auto found = std::find_if(state.entries.begin(), state.entries.end(),
                            [&](const Entry& one) { return one.handle == &handle; });
  if (found == state.entries.end()) return std::nullopt;
  state.aborts += 1;
  if (found != state.entries.begin()) {
    return Ends{.groups = {found->group}, .is_world = false, .meetings = nullptr};
  }
  if (state.world_ended_by.empty()) state.world_ended_by = how;
  Ends ends{.groups = {}, .is_world = true, .meetings = state.meetings};
  for (const Entry& one : state.entries) ends.groups.push_back(one.group);
  return ends;
}

Result<void> LiveGroups::Abort(const ProcessGroup& handle, const std::string& how) {
  State& state = state_.Get();
  auto ends = Take(state, handle, how);
  if (!ends) return CheckInherited(handle);
  Result<void> ok;
  if (!ends->groups.front()->is_member()) ok = ends->groups.front()->Uninvolved("Abort");
  std::erase_if(ends->groups, [](const Group* group) { return !group->is_member(); });
  for (Group* group : ends->groups) group->EndCalls(how);  // before the store, which may be slow
  bool answers = true;                                     // the store, which all groups share
  for (Group* group : ends->groups) answers = answers && group->End(how);
  if (ends->is_world && answers) EndMeetings(*ends->groups.front(), ends->meetings, how);
  MutexLock lock(state.mutex);
  state.aborts -= 1;
  state.changed.NotifyAll();
  return ok;
}

// Returns why there is no such group. Not analysed: the parent's state does not change any more.
Result<void> LiveGroups::CheckInherited(const ProcessGroup& handle) NO_THREAD_SAFETY_ANALYSIS {
  if (const State* parent = state_.inherited()) {
    for (const Entry& one : parent->entries) {
      if (one.handle == &handle) return ErrorOfFork(*one.group);
    }
  }
  return Error{ErrorCode::kNotFound, "is destroyed: want no call after Destroy()"};
}

std::optional<Error> LiveGroups::WorldAborted() {
  State& state = state_.Get();
  MutexLock lock(state.mutex);
  if (state.world_ended_by.empty()) return std::nullopt;
  return Error{ErrorCode::kSystem, "the world process group is broken: " +
                                       ByRank(*state.entries.front().group, state.world_ended_by)};
}

}  // namespace rankrun::comm
