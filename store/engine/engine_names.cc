#include "store/engine/engine.h"
#include "store/engine/engine_sizes.h"

// The engine's bookkeeping: names, their memory, and their waits.

namespace rankrun::store {
namespace {

// Largest value that is copied into the buffer of the old value.
constexpr size_t kCopiedBytes = 256;
constexpr size_t kSpareBytes = 32;  // spare room of such a buffer, besides twice the value's size

}  // namespace

void Engine::Disconnect(ConnectionId connection) {
  CancelWaits(connection);
  auto found = watches_.find(connection);
  if (found == watches_.end()) return;
  for (const Watch& watch : found->second) {
    watch.name->extras->watchers.erase(watch.place);
    bytes_ -= kWaiterBytes;
    EraseIfUnused(*watch.name);
  }
  watches_.erase(found);
}

void Engine::CancelWaits(ConnectionId connection) {
  auto found = waits_.find(connection);
  if (found == waits_.end()) return;
  for (const Wait& wait : found->second) Withdraw(wait);
  waits_.erase(found);
}

void Engine::Clear() {
  waits_.clear();
  watches_.clear();
  names_.Clear();
  bytes_ = 0;
  key_count_ = 0;
  queue_count_ = 0;
}

std::vector<Engine::Waited> Engine::ListWaits() const {
  std::unordered_map<const Name*, Waited> by_name;
  for (const auto& [connection, waits] : waits_) {
    for (const Wait& wait : waits) {
      for (const Slot& slot : wait.slots) {
        if (slot.name == nullptr) continue;
        Waited& waited = by_name[slot.name];
        waited.name = slot.name->key;
        waited.waiters.push_back(connection);
      }
    }
  }
  std::vector<Waited> all;
  all.reserve(by_name.size());
  for (auto& entry : by_name) all.push_back(std::move(entry.second));
  return all;
}

// Not inlined: when g++ 12 sees the kind of the reply, it falsely warns that
// members of the other kinds are uninitialised.
[[gnu::noinline]] void Engine::Answer(ConnectionId to, Reply reply, Replies& replies) {
  replies.push_back({to, std::move(reply)});
}

size_t Engine::LengthOf(const Name* place) {
  return place == nullptr || place->extras == nullptr ? 0 : place->extras->queue.size();
}

const std::string* Engine::Find(const std::string& key) const { return ValueAt(names_.Find(key)); }

const std::string* Engine::ValueAt(const Name* place) {
  return place == nullptr || !place->value ? nullptr : &*place->value;
}

bool Engine::Exists(const std::string& key) const {
  const Name* found = names_.Find(key);
  return ValueAt(found) != nullptr || LengthOf(found) > 0;
}

Result<void> Engine::Reserve(size_t more_bytes) const {
  bool fits = bytes_ <= largest_bytes_ && more_bytes <= largest_bytes_ - bytes_;
  if (fits) return {};
  return Error{ErrorCode::kSystem, "the store is full: it holds " + std::to_string(bytes_) +
                                       " of " + std::to_string(largest_bytes_) + " bytes and " +
                                       std::to_string(more_bytes) + " more are needed"};
}

Result<void> Engine::CheckReplySize(size_t bytes) const {
  if (bytes <= ReplyLimit()) return {};
  return Error{ErrorCode::kSystem, "a reply of " + std::to_string(bytes) +
                                       " bytes is over the limit of " +
                                       std::to_string(ReplyLimit())};
}

Result<void> Engine::CheckNoticeSize(size_t bytes) const {
  if (bytes <= ReplyLimit()) return {};
  return Error{ErrorCode::kSystem, "the notices to all watchers take " + std::to_string(bytes) +
                                       " bytes, over the limit of " + std::to_string(ReplyLimit())};
}

// Returns the size of all notices of a new value of `value_bytes` bytes.
size_t Engine::NoticeBytes(const Name* place, size_t value_bytes) {
  if (place == nullptr || place->extras == nullptr) return 0;
  const std::string* old = ValueAt(place);
  size_t old_bytes = old == nullptr ? 0 : old->size();
  return place->extras->watchers.size() * (place->key.size() + old_bytes + value_bytes);
}

// Returns the growth of the store if the value at `key` had `value_bytes`
// bytes.
size_t Engine::GrowthOf(const std::string& key, size_t value_bytes) const {
  return GrowthAt(names_.Find(key), key.size(), value_bytes);
}

size_t Engine::GrowthAt(const Name* place, size_t key_bytes, size_t value_bytes) {
  if (place == nullptr) return kEntryBytes + key_bytes + value_bytes;
  const std::string* old = ValueAt(place);
  size_t old_bytes = old == nullptr ? 0 : old->size();
  return value_bytes > old_bytes ? value_bytes - old_bytes : 0;
}

engine::Name& Engine::Touch(std::string key) {
  auto [name, is_new] = names_.FindOrAdd(std::move(key));
  if (is_new) bytes_ += kEntryBytes + name->key.size();
  return *name;
}

Engine::Extras& Engine::ExtrasOf(Name& name) {
  if (name.extras == nullptr) {
    name.extras = std::make_unique<Extras>();
    bytes_ += kExtrasBytes;
  }
  return *name.extras;
}

// Frees empty extras, and the name itself if nothing is left of it. `name` may
// be dangling afterwards.
void Engine::EraseIfUnused(Name& name) {
  auto& extras = name.extras;
  if (extras != nullptr && extras->empty()) {
    extras.reset();
    bytes_ -= kExtrasBytes;
  }
  if (extras != nullptr || name.value) return;
  bytes_ -= kEntryBytes + name.key.size();
  names_.Erase(name);
}

// Sets the value, ends the WAITs of `name` and notifies its watchers. Keeps
// `name`.
void Engine::Assign(Name& name, std::string&& value, Replies& replies) {
  auto change = NoticeReply::Change::kUpdated;
  if (!name.value) {
    change = NoticeReply::Change::kCreated;
    key_count_ += 1;
    name.value.emplace();
  }
  std::string& place = *name.value;
  bytes_ += value.size() - place.size();
  const bool has_room =
      value.size() <= place.capacity() && place.capacity() <= 2 * value.size() + kSpareBytes;
  if (name.extras == nullptr && has_room && value.size() <= kCopiedBytes) {
    place = value;  // copying is cheaper than swapping memory
    return;
  }
  place.swap(value);
  if (name.extras == nullptr) return;
  WakeWaits(name, replies);
  Notify(name, change, value, replies);
}

// Does the same and ends the BARRIERs of `name` as well. May erase it.
void Engine::Change(Name& name, std::string&& value, Replies& replies) {
  Assign(name, std::move(value), replies);
  WakeBarriers(name, replies);
}

void Engine::Notify(const Name& name, NoticeReply::Change change, const std::string& old_value,
                    Replies& replies) const {
  if (name.extras == nullptr) return;
  for (ConnectionId watcher : name.extras->watchers) {
    std::string new_value = name.value ? *name.value : std::string();
    Answer(watcher, NoticeReply{change, name.key, old_value, std::move(new_value)}, replies);
  }
}

// Sets the value of `key`. The caller has reserved the room.
void Engine::Put(std::string&& key, std::string&& value, Replies& replies) {
  Change(Touch(std::move(key)), std::move(value), replies);
}

// Does the same at `place`, the entry of `key` or null, if there is room.
Result<void> Engine::PutAt(Name* place, std::string&& key, std::string&& value, Replies& replies) {
  if (auto fits = Reserve(GrowthAt(place, key.size(), value.size())); !fits) return fits;
  if (auto fits = CheckNoticeSize(NoticeBytes(place, value.size())); !fits) return fits;
  Change(place == nullptr ? Touch(std::move(key)) : *place, std::move(value), replies);
  return {};
}

Engine::Wait& Engine::AddWait(ConnectionId connection, bool is_barrier) {
  std::list<Wait>& waits = waits_[connection];
  Wait& wait = waits.emplace_back(Wait{.connection = connection, .is_barrier = is_barrier});
  wait.self = std::prev(waits.end());
  bytes_ += kWaitBytes;
  return wait;
}

Engine::Waiters& Engine::ListFor(const Wait& wait, Extras& extras) {
  return wait.is_barrier ? extras.at_barrier : extras.waiters;
}

// Adds `key` to the names of `wait`. A key that the request repeats counts
// once.
void Engine::Register(Wait& wait, std::string key) {
  Name& name = Touch(std::move(key));
  Waiters& waiters = ListFor(wait, ExtrasOf(name));
  if (!waiters.empty() && waiters.back().wait == &wait) return;
  bytes_ += kWaiterBytes;
  waiters.push_back({&wait, wait.slots.size()});
  wait.slots.push_back({&name, std::prev(waiters.end())});
  wait.missing += 1;
}

void Engine::WakeBarriers(Name& name, Replies& replies) {
  if (name.extras == nullptr) return;
  for (const Waiter& waiter : std::exchange(name.extras->at_barrier, {})) {
    MarkNameExists(waiter, replies);
  }
  EraseIfUnused(name);
}

void Engine::WakeWaits(Name& name, Replies& replies) {
  if (name.extras == nullptr) return;
  for (const Waiter& waiter : std::exchange(name.extras->waiters, {})) {
    MarkNameExists(waiter, replies);
  }
  EraseIfUnused(name);
}

// Records that the name of `waiter` now exists. The caller has already removed
// `waiter` from the name's list.
void Engine::MarkNameExists(const Waiter& waiter, Replies& replies) {
  Wait& wait = *waiter.wait;
  wait.slots[waiter.slot].name = nullptr;
  wait.missing -= 1;
  if (wait.missing > 0) return;
  Answer(wait.connection, WaitReply::kStopWaiting, replies);
  bytes_ -= kWaitBytes + wait.slots.size() * kWaiterBytes;
  auto of_connection = waits_.find(wait.connection);
  of_connection->second.erase(wait.self);
  if (of_connection->second.empty()) waits_.erase(of_connection);
}

void Engine::Withdraw(const Wait& wait) {
  for (const Slot& slot : wait.slots) {
    if (slot.name == nullptr) continue;
    ListFor(wait, *slot.name->extras).erase(slot.place);
    EraseIfUnused(*slot.name);
  }
  bytes_ -= kWaitBytes + wait.slots.size() * kWaiterBytes;
}

}  // namespace rankrun::store
