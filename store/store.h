#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::store {

// What compare_set found and did.
struct CompareSetResult {
  std::string value;  // the value at the key afterwards; `expected` if there is none
  bool swapped;       // whether `desired` is there; a client over the wire cannot tell
                      // that from "was there before"
};

// A key-value store in which the workers of a job meet. Keys are text, values
// are bytes. Semantics as torch.distributed.Store.
// A store that was given a DeathWatch ends waits that others will not end any
// more: kCancelled, with the death word. So it does when the word was told
// before, but then a key that is there is found all the same.
// Thread: any (an implementation serialises calls).
// Source: pytorch.org/docs/stable/distributed.html
class Store {
 public:
  virtual ~Store() = default;

  virtual Result<void> Set(std::string_view key, std::string_view value) = 0;

  // Waits until the key exists, then returns its value.
  // Errors: kTimeout after `timeout`, naming the key; kPeerLost when the
  // server is gone.
  virtual Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) = 0;

  // Adds to the decimal number at `key` (0 if missing) and returns the sum.
  // Errors: kPeerLost when the value is no number: the server closes.
  virtual Result<int64_t> Add(std::string_view key, int64_t delta) = 0;

  // Whether all keys exist, at once.
  virtual Result<bool> Check(std::span<const std::string> keys) = 0;

  // Waits until all keys exist. Errors: kTimeout, naming the keys asked for and
  // those that are missing.
  virtual Result<void> Wait(std::span<const std::string> keys,
                            std::chrono::milliseconds timeout) = 0;

  // Stores `desired` if the value equals `expected`, or if the key is missing
  // and `expected` is empty.
  virtual Result<CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                              std::string_view desired) = 0;

  // Whether the key existed.
  virtual Result<bool> Delete(std::string_view key) = 0;

  // Puts `value` behind the value of `key`, or makes the key.
  virtual Result<void> Append(std::string_view key, std::string_view value) = 0;

  // Waits until all keys exist, then returns their values in the order of
  // `keys`. Errors: kTimeout, as Wait.
  virtual Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                                    std::chrono::milliseconds timeout) = 0;

  // One Set after the other. Errors: kInvalid when the lengths differ.
  virtual Result<void> MultiSet(std::span<const std::string> keys,
                                std::span<const std::string> values) = 0;

  // How many keys there are in the whole store, those of other prefixes and of
  // PyTorch's own bookkeeping ("init/") included.
  virtual Result<int64_t> NumKeys() = 0;

  // The keys that Set and Get of this object know by these names, in no order.
  virtual Result<std::vector<std::string>> ListKeys() = 0;

  // First-in-first-out queues, in a name space of their own that only Wait and
  // Check share with the keys: a queue that is not empty counts as existing.
  virtual Result<void> QueuePush(std::string_view key, std::string_view value) = 0;
  // The oldest value. Errors: kTimeout when the queue stays empty.
  virtual Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) = 0;
  // The oldest value, or nothing if the queue is empty now.
  virtual Result<std::optional<std::string>> TryQueuePop(std::string_view key) = 0;
  virtual Result<int64_t> QueueLength(std::string_view key) = 0;

  // Another client of the same store, whose calls do not wait for this one's.
  // Errors: over TCP those of TcpStore::Connect, after `timeout`; else none.
  Result<std::unique_ptr<Store>> Clone(std::chrono::milliseconds timeout) {
    return CloneWith(timeout, std::chrono::milliseconds::max());
  }
  // The same, one that gives its server less time for a reply than this one does.
  virtual Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                                   std::chrono::milliseconds reply_timeout) = 0;
};

}  // namespace rankrun::store
