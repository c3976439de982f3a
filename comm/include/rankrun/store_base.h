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

// Result of CompareSet. Over TCP the protocol does not report whether the
// server changed the value: `swapped` is also true if the value already was
// `desired`.
struct CompareSetResult {
  std::string value;  // new value of the key; `expected` if there is no such key
  bool swapped = false;
};

// Key-value store. Keys are text; values are bytes in a std::string. A store is one
// of the final classes of store.h, or of a class that the program derives.
//
// A derived class overrides Set, Get, Add, Check, Wait, CompareSet, DeleteKey and
// NumKeys. MultiGet, MultiSet and Barrier call these unless they are overridden, too;
// the other functions that are not overridden throw DistError. Overrides run on any thread, and a
// waiting one must not delay the others: Init and PrefixStore use one object for
// everything. An override throws the errors below; the library passes on any other
// exception as DistStoreError. In a worker of rankrun it lets waits last at most
// 100 ms, so that it notices deaths.
//
// Functions that wait take a time-out; 0 checks once, no value means timeout().
// Errors: DistStoreError after the time-out, with the missing keys, or if the
// store cannot do the operation (full disk, damaged file). DistNetworkError if
// the server or file is lost; in a worker of rankrun also, at once, if another
// worker has died, with its rank. DistError for wrong use, after which nothing
// has changed. In a fork of the process that opened one of the classes of store.h, each
// call throws DistError, and the destructor ends nothing of the parent's.
// Thread: any. Calls on one TcpStore run one after the other, so a waiting call
// delays the others; give each thread a Clone().
// Source: torch.distributed.Store (pytorch.org/docs/stable/distributed.html).
class RANKRUN_API Store {
 public:
  using Timeout = std::optional<std::chrono::milliseconds>;

  virtual ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  virtual void Set(std::string_view key, std::string_view value);
  // Waits until the key exists. Returns its value.
  virtual std::string Get(std::string_view key, Timeout timeout = {});
  // Adds to the decimal number at `key` (0 if missing) and returns the sum.
  // Throws DistError if the value is no number; over TCP DistNetworkError,
  // because the server closes the connection.
  virtual int64_t Add(std::string_view key, int64_t delta);
  // Returns whether all keys exist now.
  virtual bool Check(const std::vector<std::string>& keys);
  // Waits until all keys exist.
  virtual void Wait(const std::vector<std::string>& keys, Timeout timeout = {});
  // Returns once `world_size` callers have come to the barrier `key`. A key
  // serves once: take another one for the next barrier. A caller that times out
  // has come all the same. PyTorch's Store.barrier meets here, too. A TcpStore
  // needs a server of rankrun or of PyTorch 2.13 with libuv, and does not meet a
  // PrefixStore on it, which uses the keys <key>/num_members and
  // <key>/last_member, as FileStore and HashStore do.
  // Throws DistStoreError with the number of callers that have come, after the
  // time-out; DistError if `world_size` is below 1.
  virtual void Barrier(std::string_view key, int world_size, Timeout timeout = {});
  // Stores `desired` if the value equals `expected`, or if the key is missing
  // and `expected` is empty.
  virtual CompareSetResult CompareSet(std::string_view key, std::string_view expected,
                                      std::string_view desired);
  // Returns whether the key existed.
  virtual bool DeleteKey(std::string_view key);
  // Appends to the value of `key`, or creates the key.
  virtual void Append(std::string_view key, std::string_view value);
  // Waits until all keys exist. Returns the values in the order of `keys`.
  virtual std::vector<std::string> MultiGet(const std::vector<std::string>& keys,
                                            Timeout timeout = {});
  // Throws DistError unless there is one value per key.
  virtual void MultiSet(const std::vector<std::string>& keys,
                        const std::vector<std::string>& values);
  // Returns the number of keys in the whole store: under all prefixes, and over
  // TCP including the key in which PyTorch counts workers.
  virtual int64_t NumKeys();
  // Returns the names that Get accepts, in no particular order.
  virtual std::vector<std::string> ListKeys();

  // First-in-first-out queues. Queues and keys have separate names. Exception:
  // for Wait and Check a queue that is not empty is an existing key.
  virtual void QueuePush(std::string_view key, std::string_view value);
  virtual std::string QueuePop(std::string_view key, Timeout timeout = {});  // waits for a value
  virtual std::optional<std::string> TryQueuePop(std::string_view key);
  virtual int64_t QueueLength(std::string_view key);

  // Returns whether Append, MultiGet and MultiSet are operations of the store
  // itself: true for the classes of store.h, false for a derived class unless it
  // returns otherwise. A PrefixStore answers as the store under it.
  virtual bool HasExtendedApi() const;

  // Returns another client of the same data, with the current time-out of this
  // one. The clone of a TcpStore has its own connection and works until the
  // server ends. Throws DistNetworkError with the cause if it cannot connect
  // within timeout().
  virtual std::unique_ptr<Store> Clone();

  // Time-out of waits without one of their own; initially 300 s. A negative one
  // is a DistError.
  void SetTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const;

 protected:
  // For derived classes. Throws DistError for a negative time-out.
  explicit Store(std::chrono::milliseconds timeout = std::chrono::seconds(300));

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
