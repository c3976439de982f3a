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

// Result of CompareSet.
struct CompareSetResult {
  std::string value;  // value at the key afterwards; `expected` if the key is missing
  // Whether `desired` is stored now. TcpStore cannot tell whether it was stored
  // before.
  bool swapped;
};

// End of the names of keys and queues at which threads of librankrun wait for news, while the
// program does other work: such a wait is none of the rank.
constexpr std::string_view kNewsMark = "/rankrun_news";

class Store;

// Store::BarrierByKeys by the store's other functions. It is none of its own, so that no
// function of Store is outside of this header: a plug-in of the library has none of them.
Result<void> MeetByKeys(Store& store, std::string_view key, int64_t world_size,
                        std::chrono::milliseconds timeout);

// A key-value store that the workers of a job share. Keys are text, values are
// bytes. Semantics as torch.distributed.Store.
// A store with a DeathWatch cancels its waits when the watch reports a death:
// kCancelled, with the watch's message. After an earlier death a wait still
// succeeds if its keys already exist.
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
  // Errors: kPeerLost when the value is not a number, because the server then
  // closes the connection.
  virtual Result<int64_t> Add(std::string_view key, int64_t delta) = 0;

  // Returns whether all keys exist. Does not wait.
  virtual Result<bool> Check(std::span<const std::string> keys) = 0;

  // Waits until all keys exist.
  // Errors: kTimeout, naming the requested keys and the missing ones.
  virtual Result<void> Wait(std::span<const std::string> keys,
                            std::chrono::milliseconds timeout) = 0;

  // Waits until `world_size` callers have come to the barrier at `key`. A key
  // serves once: callers beyond `world_size` return at once. A caller that times
  // out has come all the same.
  // Errors: kTimeout, with the number of callers that have come; kInvalid if
  // `world_size` is below 1.
  virtual Result<void> Barrier(std::string_view key, int64_t world_size,
                               std::chrono::milliseconds timeout) {
    return BarrierByKeys(key, world_size, timeout);
  }
  // Does the same by the keys `<key>/num_members` and `<key>/last_member`, which
  // any store can hold. Callers of Barrier and of BarrierByKeys do not meet
  // where the two differ.
  virtual Result<void> BarrierByKeys(std::string_view key, int64_t world_size,
                                     std::chrono::milliseconds timeout) {
    return MeetByKeys(*this, key, world_size, timeout);
  }

  // Stores `desired` if the value equals `expected`, or if the key is missing
  // and `expected` is empty.
  virtual Result<CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                              std::string_view desired) = 0;

  // Returns whether the key existed.
  virtual Result<bool> Delete(std::string_view key) = 0;

  // Appends `value` to the value of `key`; creates the key if it is missing.
  virtual Result<void> Append(std::string_view key, std::string_view value) = 0;

  // Waits until all keys exist, then returns their values in the order of
  // `keys`.
  // Errors: kTimeout, as Wait.
  virtual Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                                    std::chrono::milliseconds timeout) = 0;

  // Sets one key after the other. Errors: kInvalid when the lengths differ.
  virtual Result<void> MultiSet(std::span<const std::string> keys,
                                std::span<const std::string> values) = 0;

  // Returns the number of keys in the whole store, including other prefixes and
  // PyTorch's own counter ("init/").
  virtual Result<int64_t> NumKeys() = 0;

  // Returns the keys as Set and Get of this object name them, in no order.
  virtual Result<std::vector<std::string>> ListKeys() = 0;

  // First-in-first-out queues. They have a name space of their own. Only Wait
  // and Check also look at queues: a non-empty queue counts as an existing key.
  virtual Result<void> QueuePush(std::string_view key, std::string_view value) = 0;
  // Removes and returns the oldest value.
  // Errors: kTimeout when the queue stays empty.
  virtual Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) = 0;
  // Removes and returns the oldest value, or nothing if the queue is empty.
  virtual Result<std::optional<std::string>> TryQueuePop(std::string_view key) = 0;
  virtual Result<int64_t> QueueLength(std::string_view key) = 0;

  // Returns another client of the same store. Its calls do not wait for the
  // calls of this one.
  // Errors: for TcpStore those of Connect, after `timeout`; else none.
  Result<std::unique_ptr<Store>> Clone(std::chrono::milliseconds timeout) {
    return CloneWith(timeout, std::chrono::milliseconds::max());
  }
  // Does the same with the shorter of `reply_timeout` and this client's own.
  virtual Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                                   std::chrono::milliseconds reply_timeout) = 0;
};

}  // namespace rankrun::store
