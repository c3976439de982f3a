#include "store/clients/key_table.h"

#include <algorithm>

namespace rankrun::store {

void KeyTable::Apply(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kSet:
      keys_.insert_or_assign(change.key, change.value);
      return Wake(change.key, LookupScope::kKeys);
    case Change::Kind::kAppend:
      keys_[change.key] += change.value;
      return Wake(change.key, LookupScope::kKeys);
    case Change::Kind::kDelete:
      keys_.erase(change.key);
      return;
    case Change::Kind::kPush:
      queues_[change.key].push_back(change.value);
      return Wake(change.key, LookupScope::kQueues);
    case Change::Kind::kPop: {
      auto found = queues_.find(change.key);
      if (found == queues_.end()) return;
      found->second.pop_front();
      if (found->second.empty()) queues_.erase(found);
      return;
    }
  }
}

const std::string* KeyTable::Find(std::string_view key) const {
  auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

const std::string* KeyTable::QueueFront(std::string_view key) const {
  auto found = queues_.find(key);
  return found == queues_.end() ? nullptr : &found->second.front();
}

size_t KeyTable::QueueLength(std::string_view key) const {
  auto found = queues_.find(key);
  return found == queues_.end() ? 0 : found->second.size();
}

bool KeyTable::Has(std::string_view key, LookupScope scope) const {
  return (scope != LookupScope::kQueues && keys_.contains(key)) ||
         (scope != LookupScope::kKeys && queues_.contains(key));
}

std::vector<std::string> KeyTable::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(keys_.size());
  for (const auto& [key, value] : keys_) keys.push_back(key);
  return keys;
}

void KeyTable::Wake(const std::string& key, LookupScope scope) {
  auto [watch, end] = watches_.equal_range(key);
  while (watch != end) {
    Watch& waiting = *watch->second;
    if (waiting.scope_ != scope && waiting.scope_ != LookupScope::kBoth) {
      ++watch;
      continue;
    }
    watch = watches_.erase(watch);
    waiting.missing_ -= 1;
    if (waiting.complete()) waiting.completed_.NotifyOne();
  }
}

KeyTable::Watch::Watch(KeyTable& table, std::span<const std::string> keys, LookupScope scope)
    : table_(table), scope_(scope) {
  for (const std::string& key : keys) {
    if (table.Has(key, scope)) continue;
    keys_.push_back(key);
    table.watches_.emplace(key, this);
    missing_ += 1;
  }
}

KeyTable::Watch::~Watch() {
  for (size_t i = 0; i < keys_.size() && missing_ > 0; ++i) {
    auto [watch, end] = table_.watches_.equal_range(keys_[i]);
    while (watch != end) {
      if (watch->second != this) {
        ++watch;
        continue;
      }
      watch = table_.watches_.erase(watch);
      missing_ -= 1;
    }
  }
}

std::vector<std::string> KeyTable::Watch::Missing() const {
  std::vector<std::string> missing;
  for (const std::string& key : keys_) {
    auto [watch, end] = table_.watches_.equal_range(key);
    bool waits = std::any_of(watch, end, [this](auto& entry) { return entry.second == this; });
    if (waits) missing.push_back(key);
  }
  return missing;
}

}  // namespace rankrun::store
