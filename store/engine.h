#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/engine_names.h"
#include "store/name_table.h"
#include "store/reply.h"
#include "store/request.h"

namespace rankrun::store {

struct Outgoing {
  ConnectionId to;
  Reply reply;
  bool operator==(const Outgoing&) const = default;
};

// The keys, their values, the queues, and who waits for them. Pure: no I/O, no
// clock, no threads. Each request costs time in proportion to its own size, its
// reply's and the waits that it ends, however many keys and connections there
// are; LIST_KEYS, to all names.
// Thread: one at a time.
// Source: docs/store-protocol.md, which says where this differs from PyTorch.
class Engine {
 public:
  // `largest_bytes` bounds what keys, values, queues and waits take,
  // bookkeeping included by estimate; `largest_reply_bytes` what one reply
  // takes, and with it a value that grows by APPEND.
  explicit Engine(size_t largest_bytes, size_t largest_reply_bytes = size_t{1} << 30)
      : largest_bytes_(largest_bytes), largest_reply_bytes_(largest_reply_bytes) {}
  Engine(const Engine&) = delete;  // waits point into their keys
  Engine& operator=(const Engine&) = delete;

  // Carries out `request` and appends the replies that it causes: to `from`
  // (none for SET, APPEND, MULTI_SET and QUEUE_PUSH, and for WAIT and BARRIER
  // until they are fulfilled), to those whose waits it ends, and to those who
  // watch a key that it changes.
  // Errors, after which nothing has changed and `from` is to be closed:
  // kInvalid for ADD and BARRIER at what is no number; kSystem when the store
  // is full, or the reply or all notices together too large.
  Result<void> Apply(ConnectionId from, Request&& request, std::vector<Outgoing>& replies);

  // Forgets what `connection` waits for, in proportion to that.
  void CancelWaits(ConnectionId connection);
  // And what it watches.
  void Disconnect(ConnectionId connection);

  void Clear();  // forgets all keys, queues, waits and watches

  // A name that is waited for, by whom: once for each WAIT and BARRIER.
  struct Waited {
    std::string name;
    std::vector<ConnectionId> waiters;
  };
  // In no order. For people: costs time in proportion to all waits.
  std::vector<Waited> ListWaits() const;

  size_t key_count() const { return key_count_; }
  size_t queue_count() const { return queue_count_; }
  size_t bytes() const { return bytes_; }

 private:
  using Extras = engine::Extras;
  using Name = engine::Name;
  using Slot = engine::Slot;
  using Wait = engine::Wait;
  using Waiter = engine::Waiter;
  using Waiters = engine::Waiters;
  using Watch = engine::Watch;
  using Replies = std::vector<Outgoing>;

  // One per kind of request; see Apply.
  Result<void> On(ConnectionId, SetRequest&&, Replies&);
  Result<void> On(ConnectionId, CompareSetRequest&&, Replies&);
  Result<void> On(ConnectionId, const GetRequest&, Replies&);
  Result<void> On(ConnectionId, AddRequest&&, Replies&);
  Result<void> On(ConnectionId, const CheckRequest&, Replies&);
  Result<void> On(ConnectionId, WaitRequest&&, Replies&);
  Result<void> On(ConnectionId, const DeleteKeyRequest&, Replies&);
  Result<void> On(ConnectionId, CancelWaitRequest&&, Replies&);
  Result<void> On(ConnectionId, PingRequest&&, Replies&);
  Result<void> On(ConnectionId, GetNumKeysRequest&&, Replies&);
  Result<void> On(ConnectionId, ListKeysRequest&&, Replies&);
  Result<void> On(ConnectionId, AppendRequest&&, Replies&);
  Result<void> On(ConnectionId, const MultiGetRequest&, Replies&);
  Result<void> On(ConnectionId, MultiSetRequest&&, Replies&);
  Result<void> On(ConnectionId, QueuePushRequest&&, Replies&);
  Result<void> On(ConnectionId, const QueuePopRequest&, Replies&);
  Result<void> On(ConnectionId, const QueueLenRequest&, Replies&);
  Result<void> On(ConnectionId, BarrierRequest&&, Replies&);
  Result<void> On(ConnectionId, WatchKeyRequest&&, Replies&);

  static void Answer(ConnectionId to, Reply reply, Replies& replies);
  static size_t LengthOf(const Name* place);  // of its queue
  const std::string* Find(const std::string& key) const;
  static const std::string* ValueAt(const Name* place);
  bool Exists(const std::string& key) const;  // the key, or a value in the queue
  Result<int64_t> NumberAfter(std::string_view operation, const std::string& key,
                              const std::string* text, int64_t delta) const;
  Result<void> Reserve(size_t more_bytes) const;
  Result<void> CheckReplySize(size_t bytes) const;
  Result<void> CheckNoticeSize(size_t bytes) const;
  static size_t NoticeBytes(const Name* place, size_t value_bytes);
  size_t GrowthOf(const std::string& key, size_t value_bytes) const;
  static size_t GrowthAt(const Name* place, size_t key_bytes, size_t value_bytes);

  // The steps of changes, for which Reserve has found room.
  Name& Touch(std::string key);
  Extras& ExtrasOf(Name& name);
  void Tidy(Name& name);
  void Assign(Name& name, std::string&& value, Replies& replies);
  void Change(Name& name, std::string&& value, Replies& replies);
  void Notify(const Name& name, NoticeReply::Change change, const std::string& old_value,
              Replies& replies) const;
  void Put(std::string&& key, std::string&& value, Replies& replies);
  Result<void> PutAt(Name* place, std::string&& key, std::string&& value, Replies& replies);

  static Waiters& ListFor(const Wait& wait, Extras& extras);
  Wait& AddWait(ConnectionId connection, bool is_barrier);
  void Register(Wait& wait, std::string key);
  void WakeBarriers(Name& name, Replies& replies);
  void WakeWaits(Name& name, Replies& replies);
  void Arrive(const Waiter& waiter, Replies& replies);
  void Withdraw(const Wait& wait);

  const size_t largest_bytes_;
  const size_t largest_reply_bytes_;
  size_t bytes_ = 0;
  size_t key_count_ = 0;    // names that have a value
  size_t queue_count_ = 0;  // names that have a queue
  engine::NameTable names_;
  std::unordered_map<ConnectionId, std::list<Wait>> waits_;
  std::unordered_map<ConnectionId, std::vector<Watch>> watches_;
};

}  // namespace rankrun::store
