#include "store/clients/prefix_store.h"

namespace rankrun::store {

using std::chrono::milliseconds;

using Keys = std::span<const std::string>;

PrefixStore::PrefixStore(std::string prefix, Store& store)
    : prefix_(std::move(prefix)), store_(store) {}

PrefixStore::PrefixStore(std::string prefix, std::unique_ptr<Store> store)
    : prefix_(std::move(prefix)), owned_(std::move(store)), store_(*owned_) {}

Result<void> PrefixStore::Set(std::string_view key, std::string_view value) {
  return store_.Set(Name(key), value);
}

Result<std::string> PrefixStore::Get(std::string_view key, milliseconds timeout) {
  return store_.Get(Name(key), timeout);
}

Result<int64_t> PrefixStore::Add(std::string_view key, int64_t delta) {
  return store_.Add(Name(key), delta);
}

Result<bool> PrefixStore::Check(Keys keys) { return store_.Check(Names(keys)); }

Result<void> PrefixStore::Wait(Keys keys, milliseconds timeout) {
  return store_.Wait(Names(keys), timeout);
}

Result<void> PrefixStore::BarrierByKeys(std::string_view key, int64_t world_size,
                                        milliseconds timeout) {
  return store_.BarrierByKeys(Name(key), world_size, timeout);
}

Result<CompareSetResult> PrefixStore::CompareSet(std::string_view key, std::string_view expected,
                                                 std::string_view desired) {
  return store_.CompareSet(Name(key), expected, desired);
}

Result<bool> PrefixStore::Delete(std::string_view key) { return store_.Delete(Name(key)); }

Result<void> PrefixStore::Append(std::string_view key, std::string_view value) {
  return store_.Append(Name(key), value);
}

Result<std::vector<std::string>> PrefixStore::MultiGet(Keys keys, milliseconds timeout) {
  return store_.MultiGet(Names(keys), timeout);
}

Result<void> PrefixStore::MultiSet(Keys keys, Keys values) {
  return store_.MultiSet(Names(keys), values);
}

Result<int64_t> PrefixStore::NumKeys() { return store_.NumKeys(); }

Result<std::vector<std::string>> PrefixStore::ListKeys() {
  auto all = store_.ListKeys();
  if (!all) return all;
  std::string start = Name("");
  std::vector<std::string> own;
  for (const std::string& key : *all) {
    if (key.starts_with(start)) own.push_back(key.substr(start.size()));
  }
  return own;
}

Result<void> PrefixStore::QueuePush(std::string_view key, std::string_view value) {
  return store_.QueuePush(Name(key), value);
}

Result<std::string> PrefixStore::QueuePop(std::string_view key, milliseconds timeout) {
  return store_.QueuePop(Name(key), timeout);
}

Result<std::optional<std::string>> PrefixStore::TryQueuePop(std::string_view key) {
  return store_.TryQueuePop(Name(key));
}

Result<int64_t> PrefixStore::QueueLength(std::string_view key) {
  return store_.QueueLength(Name(key));
}

Result<std::unique_ptr<Store>> PrefixStore::CloneWith(std::chrono::milliseconds timeout,
                                                      std::chrono::milliseconds reply_timeout) {
  auto clone = store_.CloneWith(timeout, reply_timeout);
  if (!clone) return clone;
  return std::unique_ptr<Store>(new PrefixStore(prefix_, std::move(*clone)));
}

std::string PrefixStore::Name(std::string_view key) const {
  return std::string(prefix_).append("/").append(key);
}

std::vector<std::string> PrefixStore::Names(Keys keys) const {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const std::string& key : keys) names.push_back(Name(key));
  return names;
}

const Store& BelowPrefixes(const Store& store) {
  const Store* below = &store;
  while (const auto* prefix = dynamic_cast<const PrefixStore*>(below)) {
    below = &prefix->underlying_store();
  }
  return *below;
}

}  // namespace rankrun::store
