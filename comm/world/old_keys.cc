// The part of GroupTable that deletes keys that no rank reads any more.

#include "comm/group/process_group_access.h"
#include "comm/world/group_table.h"

namespace rankrun::comm {

// Deletes the wishes of the calls before `new_group`. All ranks must have reached that
// call, because they have read the earlier wishes then.
void GroupTable::DeleteWishesBefore(int new_group) {
  for (; world_.first_kept < new_group; ++world_.first_kept) {
    for (int rank : TheWorld().identity().global_ranks) {
      static_cast<void>(world_.meeting_store->Delete(WishesKey(world_.first_kept, rank)));
    }
  }
}

// Deletes the keys of a group once its last member has destroyed it, because a
// slower member may still read them. If a member leaves the group to Destroy(),
// the keys stay until the next Init.
void GroupTable::ForgetKeysOf(const GroupIdentity& destroyed) {
  if (!OpenMeetings(kCleaning)) return;
  auto gone = world_.meeting_store->Add(destroyed.key_prefix + "/gone", 1);
  if (!gone || *gone < destroyed.world_size()) return;
  DeleteKeysOf(*world_.meeting_store, destroyed.key_prefix);
}

void GroupTable::DeleteKeysOf(store::Store& store, const std::string& prefix) {
  auto own = store.CloneWith(kCleaning, kCleaning);
  if (!own) return;
  auto keys = (*own)->ListKeys();
  if (!keys) return;
  for (const std::string& key : *keys) {
    if (key.starts_with(prefix + "/")) static_cast<void>((*own)->Delete(key));
  }
}

}  // namespace rankrun::comm
