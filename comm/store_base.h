#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rankrun/export.h>

namespace rankrun {

namespace comm {
struct StoreState;
}

// What CompareSet found and did. Over TCP `swapped` is a guess, as the protocol
// does not tell: it is also true when the value was `desired` before.
struct CompareSetResult {
  std::string value;  // the value afterwards; `expected` if there is none
  bool swapped = false;
};

// A key-value store. Keys are text; values are bytes, in a std::string. What it
// is made of is one of the final classes of store.h; others cannot be derived.
//
// Functions that wait take a limit, 0 for looking once; without one, timeout()
// is it. They throw DistStoreError when it has passed, naming the keys that are
// missing; in a worker of rankrun DistNetworkError at once when another worker
// has died, naming it. All throw DistNetworkError when the server (or the file) is lost,
// DistStoreError when the store cannot do it (a full disk, a damaged file), and
// DistError for wrong use; after the latter nothing has changed.
// Thread: any. Of a TcpStore calls run one after the other, so that a waiting
// one holds up the others: give each thread a Clone().
// Source: torch.distributed.Store (pytorch.org/docs/stable/distributed.html).
class RANKRUN_API Store {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;

  virtual ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Set(std::string_view key, std::string_view value);
  // Waits until the key exists.
  std::string Get(std::string_view key, Timeout timeout = {});
  // Adds to the decimal number at `key` (0 if missing) and returns the sum. If
  // the value is no number it throws DistError; DistNetworkError over TCP,
  // where the server closes the connection.
  int64_t Add(std::string_view key, int64_t delta);
  // Whether all keys exist, now.
  bool Check(const std::vector<std::string>& keys);
  // Waits until all keys exist.
  void Wait(const std::vector<std::string>& keys, Timeout timeout = {});
  // Stores `desired` if the value equals `expected`, or if the key is missing
  // and `expected` is empty.
  CompareSetResult CompareSet(std::string_view key, std::string_view expected,
                              std::string_view desired);
  // Whether the key existed.
  bool DeleteKey(std::string_view key);
  // Puts `value` behind the value of `key`, or makes the key.
  void Append(std::string_view key, std::string_view value);
  // Waits until all keys exist; the values are in the order of `keys`.
  std::vector<std::string> MultiGet(const std::vector<std::string>& keys, Timeout timeout = {});
  // One value per key, or it throws DistError.
  void MultiSet(const std::vector<std::string>& keys, const std::vector<std::string>& values);
  // Of the whole store: all prefixes, and over TCP PyTorch's count of workers.
  int64_t NumKeys();
  // The names that Get takes, in no order.
  std::vector<std::string> ListKeys();

  // First-in-first-out queues. Names are apart from those of keys, except that
  // Wait and Check take a queue that is not empty for a key that exists.
  void QueuePush(std::string_view key, std::string_view value);
  std::string QueuePop(std::string_view key, Timeout timeout = {});  // waits for a value
  std::optional<std::string> TryQueuePop(std::string_view key);
  int64_t QueueLength(std::string_view key);

  // Another client of the same data, with this one's time-out as it is now. A
  // TcpStore's has a connection of its own and works as long as the server. It
  // throws DistNetworkError, telling why, if it cannot connect within timeout().
  std::unique_ptr<Store> Clone();

  // How long waits take at most if they are not told; 300 s at first. Below 0
  // is a DistError.
  void SetTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const;

 private:
  friend struct comm::StoreState;
  friend class FileStore;
  friend class HashStore;
  friend class PrefixStore;
  friend class TcpStore;
  explicit Store(std::unique_ptr<comm::StoreState> state);

  std::unique_ptr<comm::StoreState> state_;
};

}  // namespace rankrun
