#pragma once

#include "store/store.h"

namespace rankrun::store {

// A view of another store that maps each key and queue k to "<prefix>/k" there.
// Nests: PrefixStore("b", PrefixStore("a", s)) maps k to "a/b/k". Errors are
// those of the other store and name its keys. Time-outs apply per call and do
// not change the other store.
// Thread: as the other store.
// Source: torch.distributed.PrefixStore.
class PrefixStore final : public Store {
 public:
  // Does not own `store`, which must outlive this object.
  PrefixStore(std::string prefix, Store& store);
  // Owns `store`.
  PrefixStore(std::string prefix, std::unique_ptr<Store> store);

  const std::string& prefix() const { return prefix_; }
  Store& underlying_store() const { return store_; }

  Result<void> Set(std::string_view key, std::string_view value) override;
  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<int64_t> Add(std::string_view key, int64_t delta) override;
  Result<bool> Check(std::span<const std::string> keys) override;
  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  // Meets at keys with the prefix, as PyTorch's PrefixStore does, also where the
  // other store has a barrier of its own.
  Result<void> BarrierByKeys(std::string_view key, int64_t world_size,
                             std::chrono::milliseconds timeout) override;
  Result<CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                      std::string_view desired) override;
  Result<bool> Delete(std::string_view key) override;
  Result<void> Append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override;
  Result<void> MultiSet(std::span<const std::string> keys,
                        std::span<const std::string> values) override;

  // Counts the keys of the whole store, including keys without the prefix, as
  // PyTorch does.
  Result<int64_t> NumKeys() override;

  // Lists only the keys with the prefix, and removes it from them.
  Result<std::vector<std::string>> ListKeys() override;
  Result<void> QueuePush(std::string_view key, std::string_view value) override;
  Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<std::optional<std::string>> TryQueuePop(std::string_view key) override;
  Result<int64_t> QueueLength(std::string_view key) override;

  // Returns a store with the same prefix over a clone of the other store. It
  // owns the clone and may outlive both originals.
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                           std::chrono::milliseconds reply_timeout) override;

 private:
  std::string Name(std::string_view key) const;
  std::vector<std::string> Names(std::span<const std::string> keys) const;

  const std::string prefix_;
  const std::unique_ptr<Store> owned_;  // may be null
  Store& store_;
};

// Returns the store below all prefixes.
const Store& BelowPrefixes(const Store& store);

}  // namespace rankrun::store
