// The part of GroupTable that makes groups from the ranks of a group.

#include <chrono>
#include <utility>

#include "comm/core/time_left.h"
#include "comm/world/group_table.h"
#include "comm/world/join_group.h"
#include "comm/world/wishes.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// Time-out for publishing a refusal. Short, because no rank can read the refusal if
// the store is lost.
constexpr milliseconds kRefusing{1000};

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

Result<void> CheckMember(const GroupIdentity& parent) {
  if (parent.group_rank >= 0) return {};
  return Invalid("rank " + std::to_string(parent.global_rank) + " is no member of it");
}

// Fails if the members that remain could not meet.
Result<void> CheckMeeting(const GroupIdentity& parent, const std::vector<int>& excluded) {
  if (parent.deaths.has_death()) {
    return Error{
        ErrorCode::kCancelled,
        parent.deaths.Message() + ", and the agent ends all workers: want rankrun --max-restarts"};
  }
  for (int rank : excluded) {
    int global = parent.global_ranks[static_cast<size_t>(rank)];
    if (global != parent.store_rank) continue;
    return Invalid("rank " + std::to_string(global) +
                   " serves the store in which the others meet: want a store that outlives it: "
                   "that of an agent, or a file");
  }
  return {};
}

std::vector<int> GlobalRanks(const GroupIdentity& parent, const std::vector<int>& group_ranks) {
  std::vector<int> ranks;
  for (int rank : group_ranks) ranks.push_back(parent.global_ranks[static_cast<size_t>(rank)]);
  return ranks;
}

// Returns the identity of the group of `members`, which has no name yet.
GroupIdentity Child(const GroupIdentity& parent, const std::vector<int>& members,
                    milliseconds timeout, const std::string& description) {
  GroupIdentity child = parent;
  child.global_ranks = GlobalRanks(parent, members);
  child.group_rank = IndexOf(members, parent.group_rank);
  child.timeout = timeout;
  child.description = description;
  return child;
}

// Returns the part of the parent that becomes the group `child` of its `members`.
DevicePart PartOf(const GroupIdentity& child, const std::vector<int>& members,
                  const BackendWish& backend) {
  if (child.group_rank < 0) return {.color = DevicePart::kNoColor, .rank = 0, .world_size = 0};
  return {.color = members.front(),
          .rank = child.group_rank,
          .world_size = child.world_size(),
          .name = DisplayName(child),
          .options = backend.nccl};
}

// Returns whether both have the same backend for devices, whose connections the new
// group can use.
bool ShareDevices(const std::string& parent, const std::string& child) {
  auto of_parent = ParseDeviceMap(parent);
  auto of_child = ParseDeviceMap(child);
  return of_parent && of_child && !of_child->cuda.empty() && of_parent->cuda == of_child->cuda;
}

}  // namespace

Result<ProcessGroup*> GroupTable::Split(Group& parent, const std::vector<std::vector<int>>& splits,
                                        const SubgroupOptions& options) {
  const GroupIdentity& identity = parent.identity();
  if (auto ok = CheckMember(identity); !ok) return ok.error();
  return MakeSubgroup(identity, SplitOf(splits, identity.group_rank, identity.world_size()),
                      options, &parent);
}

Result<ProcessGroup*> GroupTable::Shrink(Group& parent, const std::vector<int>& excluded,
                                         const SubgroupOptions& options) {
  const GroupIdentity& identity = parent.identity();
  if (auto ok = CheckMember(identity); !ok) return ok.error();
  auto groups = WithoutRanks(excluded, identity.group_rank, identity.world_size());
  if (groups) {
    if (auto ok = CheckMeeting(identity, excluded); !ok) groups = ok.error();
  }
  const bool ends = groups && EffectiveTimeout(options.timeout, identity.timeout);
  if (ends) parent.End("ended the group by ShrinkGroup");
  auto group = MakeSubgroup(identity, groups, options, nullptr);
  if (!group) return group;
  for (int rank : GlobalRanks(identity, excluded)) world_.excluded.insert(rank);
  return group;
}

Result<ProcessGroup*> GroupTable::MakeSubgroup(const GroupIdentity& parent,
                                               const Result<Subgroups>& groups,
                                               const SubgroupOptions& options, Group* connected) {
  const std::string prefix = parent.key_prefix + "/subgroups";
  SubgroupCalls& calls = world_.subgroup_calls[parent.name];
  WishesCall call{prefix + "/" + std::to_string(calls.made++), parent.global_rank, {}};
  auto timeout = EffectiveTimeout(options.timeout, parent.timeout);
  if (!groups || !timeout) {
    const Error& reason = groups ? timeout.error() : groups.error();
    // A new connection, because other threads may wait on the world's.
    auto store = TheWorld().store().CloneWith(kRefusing, kRefusing);
    if (store) RefuseWishes(**store, call, reason);
    return reason;
  }
  TimePoint deadline = std::chrono::steady_clock::now() + *timeout;
  // A new connection, because a death may have broken an earlier one.
  auto store = TheWorld().store().CloneWith(*timeout, *timeout);
  if (!store) return std::move(store).error();
  call.ranks = GlobalRanks(parent, groups->callers);
  const BackendWish backend = BackendFor(options.backend, options.nccl);
  const std::string wishes =
      groups->wishes + ", " + OptionsInWords(backend, *timeout, options.description);
  if (auto ok = CompareWishes(**store, call, wishes, deadline); !ok) return ok.error();
  if (call.ranks.front() == call.rank) DeleteKeysOfCalls(prefix, calls);
  GroupIdentity child = Child(parent, groups->members, *timeout, options.description);
  Name(child);
  std::shared_ptr<void> connection;
  if (connected != nullptr && ShareDevices(parent.backend, backend.name)) {
    auto split = connected->SplitDevices(PartOf(child, groups->members, backend), deadline);
    if (!split) {
      Error error = Error(split.error()).In("connect the GPUs");
      if (child.group_rank >= 0) RefuseToJoin(**store, child, error);
      return error;
    }
    connection = *std::move(split);
  }
  return Enter(std::move(child), backend, deadline, std::move(connection));
}

// Deletes the keys of the calls before the last one: all ranks of the last call have
// left them.
void GroupTable::DeleteKeysOfCalls(const std::string& prefix, SubgroupCalls& calls) {
  for (; calls.first_kept < calls.made - 1; ++calls.first_kept) {
    DeleteKeysOf(TheWorld().store(), prefix + "/" + std::to_string(calls.first_kept));
  }
}

}  // namespace rankrun::comm
