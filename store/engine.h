#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/request.h"

namespace rankrun::store {

// Whose request it is. The caller numbers its connections and uses no number
// twice.
using ConnectionId = uint64_t;

struct Outgoing {
  ConnectionId to;
  Reply reply;
  bool operator==(const Outgoing&) const = default;
};

// The keys, their values and who waits for them. Pure: no I/O, no clock, no
// threads. Each request costs time in proportion to its own size and to the
// waits that it ends, however many keys and connections there are.
// Thread: one at a time.
// Source: docs/store-protocol.md, which says where this differs from PyTorch.
class Engine {
 public:
  // `largest_bytes` bounds what keys, values and waits take, bookkeeping
  // included by estimate.
  explicit Engine(size_t largest_bytes) : largest_bytes_(largest_bytes) {}
  Engine(const Engine&) = delete;  // waits point into their keys
  Engine& operator=(const Engine&) = delete;

  // Carries out `request` and appends the replies that it causes: to `from`
  // (none for SET, and for WAIT until its keys exist) and to those whose waits
  // it ends.
  // Errors, after which nothing has changed and `from` is to be closed:
  // kInvalid for ADD to what is no number; kSystem when the store is full.
  Result<void> Apply(ConnectionId from, Request request, std::vector<Outgoing>& replies);

  // Forgets what `connection` waits for, in proportion to that.
  void Disconnect(ConnectionId connection);

  // Forgets all keys and all waits.
  void Clear();

  size_t key_count() const { return key_count_; }
  size_t bytes() const { return bytes_; }

 private:
  struct Wait;
  struct Waiter {
    Wait* wait;
    size_t slot;  // in wait->slots
  };
  using Waiters = std::list<Waiter>;
  // A key either exists, with its value, or is waited for by at least one.
  using KeyState = std::variant<std::string, Waiters>;
  using Keys = std::unordered_map<std::string, KeyState>;

  // Where a wait stands in the list of one of its keys.
  struct Slot {
    Keys::value_type* key;  // null once the key has come
    Waiters::iterator place;
  };
  // One WAIT that is not fulfilled yet.
  struct Wait {
    ConnectionId connection;
    size_t missing;  // slots whose key has not come
    std::vector<Slot> slots;
    std::list<Wait>::iterator self;
  };
  using Waits = std::unordered_map<ConnectionId, std::list<Wait>>;

  // One per kind of request; see Apply.
  Result<void> On(ConnectionId, SetRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, CompareSetRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, const GetRequest&, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, AddRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, CheckRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, WaitRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, const DeleteKeyRequest&, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, CancelWaitRequest, std::vector<Outgoing>&);
  Result<void> On(ConnectionId, PingRequest, std::vector<Outgoing>&);

  const std::string* Find(const std::string& key) const;
  Result<void> Put(std::string key, std::string value, std::vector<Outgoing>& replies);
  Result<void> Reserve(size_t more_bytes) const;
  void Register(ConnectionId connection, std::vector<std::string> missing);
  void Wake(const Waiters& waiters, std::vector<Outgoing>& replies);
  void Withdraw(const Wait& wait);

  const size_t largest_bytes_;
  size_t bytes_ = 0;
  size_t key_count_ = 0;  // those of keys_ that exist
  Keys keys_;
  Waits waits_;
};

}  // namespace rankrun::store
