#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace rankrun::comm {

// Keys that all ranks of a test share.
struct MemoryKeys {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string, std::less<>> values;
  std::optional<Error> failure;                    // result of every later call, if set
  std::map<std::string, int, std::less<>> gets;    // number of calls per key
  std::map<std::string, int, std::less<>> checks;  // number of calls per key

  size_t size() {
    std::lock_guard lock(mutex);
    return values.size();
  }
  void FailWith(Error error) {
    std::lock_guard lock(mutex);
    failure = std::move(error);
    changed.notify_all();
  }
};

// Store without a server; each rank of a test has one, with the same keys.
class MemoryStore : public store::Store {
 public:
  explicit MemoryStore(std::shared_ptr<MemoryKeys> keys) : keys_(std::move(keys)) {}

  Result<void> Set(std::string_view key, std::string_view value) override {
    std::lock_guard lock(keys_->mutex);
    if (keys_->failure) return *keys_->failure;
    keys_->values.insert_or_assign(std::string(key), value);
    keys_->changed.notify_all();
    return {};
  }

  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override {
    std::string name(key);
    if (auto ok = Wait(std::span(&name, 1), timeout); !ok) return std::move(ok).error();
    std::lock_guard lock(keys_->mutex);
    keys_->gets[name] += 1;
    return keys_->values.at(name);
  }

  Result<int64_t> Add(std::string_view key, int64_t delta) override {
    std::lock_guard lock(keys_->mutex);
    if (keys_->failure) return *keys_->failure;
    std::string& value = keys_->values[std::string(key)];
    int64_t sum = (value.empty() ? 0 : std::stoll(value)) + delta;
    value = std::to_string(sum);
    keys_->changed.notify_all();
    return sum;
  }

  Result<bool> Check(std::span<const std::string> keys) override {
    std::lock_guard lock(keys_->mutex);
    if (keys_->failure) return *keys_->failure;
    for (const std::string& key : keys) keys_->checks[key] += 1;
    return Have(keys);
  }

  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(keys_->mutex);
    auto enough = [&] { return keys_->failure || Have(keys); };
    bool came = keys_->changed.wait_for(lock, timeout, enough);
    if (keys_->failure) return *keys_->failure;
    if (!came) return Error{ErrorCode::kTimeout, "not set"};
    return {};
  }

  Result<store::CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                             std::string_view desired) override {
    std::lock_guard lock(keys_->mutex);
    if (keys_->failure) return *keys_->failure;
    auto found = keys_->values.find(key);
    bool missing = found == keys_->values.end();
    if (missing ? !expected.empty() : found->second != expected) {
      return store::CompareSetResult{missing ? std::string(expected) : found->second, false};
    }
    keys_->values.insert_or_assign(std::string(key), desired);
    keys_->changed.notify_all();
    return store::CompareSetResult{std::string(desired), true};
  }

  Result<bool> Delete(std::string_view key) override {
    std::lock_guard lock(keys_->mutex);
    if (keys_->failure) return *keys_->failure;
    auto found = keys_->values.find(key);
    if (found == keys_->values.end()) return false;
    keys_->values.erase(found);
    return true;
  }

  // Functions that comm does not use.
  Result<void> Append(std::string_view, std::string_view) override { return Unused(); }
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override {
    std::vector<std::string> values;
    for (const std::string& key : keys) {
      auto value = Get(key, timeout);
      if (!value) return std::move(value).error();
      values.push_back(*std::move(value));
    }
    return values;
  }
  Result<void> MultiSet(std::span<const std::string>, std::span<const std::string>) override {
    return Unused();
  }
  Result<int64_t> NumKeys() override { return Unused(); }
  Result<std::vector<std::string>> ListKeys() override { return Unused(); }
  Result<void> QueuePush(std::string_view, std::string_view) override { return Unused(); }
  Result<std::string> QueuePop(std::string_view, std::chrono::milliseconds) override {
    return Unused();
  }
  Result<std::optional<std::string>> TryQueuePop(std::string_view) override { return Unused(); }
  Result<int64_t> QueueLength(std::string_view) override { return Unused(); }
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds,
                                           std::chrono::milliseconds) override {
    return std::unique_ptr<Store>(std::make_unique<MemoryStore>(keys_));
  }

 private:
  static Error Unused() { return Error{ErrorCode::kInvalid, "not in a memory store"}; }

  bool Have(std::span<const std::string> keys) const {
    for (const std::string& key : keys) {
      if (!keys_->values.contains(key)) return false;
    }
    return true;
  }

  const std::shared_ptr<MemoryKeys> keys_;  // shared by the ranks of the test
};

}  // namespace rankrun::comm
