// The part of GroupTable that makes groups from the ranks of a group.

#include <algorithm>
#include <chrono>
#include <utility>

#include "comm/core/time_left.h"
#include "comm/world/group_table.h"
#include "comm/world/wishes.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

Result<void> CheckMember(const GroupIdentity& parent) {
  if (parent.group_rank >= 0) return {};
  return Invalid("rank " + std::to_string(parent.global_rank) + " is no member of it");
}

// Fails if the members that remain could not meet.
Result<void> CheckMeeting(const GroupIdentity& parent, const std::vector<int>& excluded) {
  if (parent.deaths.has_death()) {
    return Error{ErrorCode::kCancelled,
                 parent.deaths.Message() + ": its agent ends all workers of the attempt"};
  }
  for (int rank : excluded) {
    int global = parent.global_ranks[static_cast<size_t>(rank)];
    if (global != parent.store_rank) continue;
    return Invalid("rank " + std::to_string(global) +
                   " serves the store in which the others meet: want a store that outlives it, of "
                   "an agent or in a file");
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
  const auto own = std::find(members.begin(), members.end(), parent.group_rank);
  child.group_rank = own == members.end() ? -1 : static_cast<int>(own - members.begin());
  child.timeout = timeout;
  child.description = description;
  return child;
}

}  // namespace

Result<ProcessGroup*> GroupTable::Split(const Group& parent,
                                        const std::vector<std::vector<int>>& splits,
                                        const SubgroupOptions& options) {
  const GroupIdentity& identity = parent.identity();
  if (auto ok = CheckMember(identity); !ok) return ok.error();
  return MakeSubgroup(identity, SplitOf(splits, identity.group_rank, identity.world_size()),
                      options);
}

Result<ProcessGroup*> GroupTable::Shrink(Group& parent, const std::vector<int>& excluded,
                                         const SubgroupOptions& options) {
  const GroupIdentity& identity = parent.identity();
  if (auto ok = CheckMember(identity); !ok) return ok.error();
  auto groups = WithoutRanks(excluded, identity.group_rank, identity.world_size());
  if (groups) {
    if (auto ok = CheckMeeting(identity, excluded); !ok) return ok.error();
    parent.End("ShrinkGroup");
  }
  auto group = MakeSubgroup(identity, groups, options);
  if (!group) return group;
  for (int rank : GlobalRanks(identity, excluded)) world_.excluded.insert(rank);
  return group;
}

Result<ProcessGroup*> GroupTable::MakeSubgroup(const GroupIdentity& parent,
                                               const Result<Subgroups>& groups,
                                               const SubgroupOptions& options) {
  const std::string calls = parent.key_prefix + "/subgroups/";
  int number = world_.subgroup_calls[parent.name]++;  // also if this rank then fails
  auto timeout = EffectiveTimeout(options.timeout, parent.timeout);
  TimePoint deadline = std::chrono::steady_clock::now() + (timeout ? *timeout : parent.timeout);
  if (auto ok = OpenMeetings(TimeLeft(deadline)); !ok) return ok.error();
  store::Store& store = *world_.meeting_store;
  WishesCall call{calls + std::to_string(number), parent.global_rank, {}};
  if (!groups || !timeout) {
    const Error& reason = groups ? timeout.error() : groups.error();
    RefuseWishes(store, call, reason);
    return reason;
  }
  call.ranks = GlobalRanks(parent, groups->callers);
  const std::string backend = BackendFor(options.backend);
  const std::string wishes = groups->wishes + ", backend " + backend + ", timeout " +
                             std::to_string(timeout->count()) + " ms, description \"" +
                             options.description + "\"";
  if (auto alike = CompareWishes(store, call, wishes, deadline); !alike) return alike.error();
  if (number > 0) {  // all have read those of the previous call
    ForgetWishes(store, {calls + std::to_string(number - 1), parent.global_rank, {}});
  }
  return Enter(Child(parent, groups->members, *timeout, options.description), backend, deadline);
}

}  // namespace rankrun::comm
