#include "comm/rpc/owned_values.h"

#include <iterator>
#include <string>
#include <utility>

namespace rankrun::comm::rpc {
namespace {

Error Missing(const ValueId& id) {
  return {ErrorCode::kInvalid, "there is no value " + std::to_string(id.number) + " of worker " +
                                   std::to_string(id.creator) + ", or no more"};
}

}  // namespace

Result<Promise<OwnedValues::Value>> OwnedValues::Make(const ValueId& id, const HoldId& hold) {
  MutexLock lock(mutex_);
  auto [entry, is_new] = entries_.try_emplace(id);
  if (!is_new) {
    return Error{ErrorCode::kInvalid, "there is a value " + std::to_string(id.number) +
                                          " of worker " + std::to_string(id.creator) + " already"};
  }
  entry->second.holds.insert(hold);
  return entry->second.promise;
}

Result<void> OwnedValues::Hold(const ValueId& id, const HoldId& hold) {
  MutexLock lock(mutex_);
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return Missing(id);
  entry->second.holds.insert(hold);
  return {};
}

Result<Future<OwnedValues::Value>> OwnedValues::Find(const ValueId& id) const {
  MutexLock lock(mutex_);
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return Missing(id);
  return entry->second.promise.future();
}

void OwnedValues::Drop(const ValueId& id, const HoldId& hold) {
  Entries freed;
  MutexLock lock(mutex_);
  auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  entry->second.holds.erase(hold);
  if (entry->second.holds.empty()) freed.insert(entries_.extract(entry));
}

void OwnedValues::DropAllOf(int holder) {
  Entries freed;
  MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    auto next = std::next(entry);
    std::erase_if(entry->second.holds, [&](const HoldId& hold) { return hold.holder == holder; });
    if (entry->second.holds.empty()) freed.insert(entries_.extract(entry));
    entry = next;
  }
}

size_t OwnedValues::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace rankrun::comm::rpc
