#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/engine/engine_names.h"
#include "store/engine/name_table.h"
#include "store/engine/reply.h"
#include "store/engine/request.h"

namespace rankrun::store {

struct Outgoing {
  ConnectionId to;
  Reply reply;
  bool operator==(const Outgoing&) const = default;
};

// The keys, their values, the queues, and the waits for them. Pure: no I/O, no
// clock, no threads. The cost of a request is proportional to its size, its
// reply and the waits that it ends, whatever the number of keys and
// connections. LIST_KEYS is proportional to the number of names.
// Thread: one at a time.
// Source: docs/store-protocol.md, which lists the differences from PyTorch.
class Engine {
 public:
  // `largest_bytes` limits the memory of keys, values, queues and waits,
  // bookkeeping included by estimate. `largest_reply_bytes` limits one reply,
  // and so also a value that grows by APPEND.
  explicit Engine(size_t largest_bytes, size_t largest_reply_bytes = size_t{1} << 30)
      : largest_bytes_(largest_bytes), largest_reply_bytes_(largest_reply_bytes) {}
  Engine(const Engine&) = delete;  // waits point into their keys
  Engine& operator=(const Engine&) = delete;

  // Carries out `request` and appends the replies that it causes: to `from`, to
  // connections with a wait that it ends, and to connections that watch a changed
  // key. SET, APPEND, MULTI_SET and QUEUE_PUSH have no reply; WAIT and BARRIER
  // are answered when they are fulfilled.
  // Errors, after which nothing has changed and the caller must close `from`:
  // kInvalid for ADD and BARRIER at a value that is not a number; kSystem when
  // the store is full, or when the reply or all notices together are too large.
  Result<void> Apply(ConnectionId from, Request&& request, std::vector<Outgoing>& replies);

  // Forgets the waits of `connection`. The cost is proportional to their
  // number.
  void CancelWaits(ConnectionId connection);
  // Forgets the waits and the watches of `connection`.
  void Disconnect(ConnectionId connection);

  // Replaces the limit of memory, also of one reply. A store above it keeps its
  // data, but takes no more.
  void LimitMemory(size_t largest_bytes) { largest_bytes_ = largest_bytes; }

  void Clear();  // forgets all keys, queues, waits and watches

  // A name with its waiting connections, one entry for each WAIT and BARRIER.
  struct Waited {
    std::string name;
    std::vector<ConnectionId> waiters;
  };
  // Returns all waited names, in no order. For diagnostics, because the cost is
  // proportional to the number of waits.
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

  // One handler per kind of request; see Apply.
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
  static size_t LengthOf(const Name* place);  // of the name's queue
  const std::string* Find(const std::string& key) const;
  static const std::string* ValueAt(const Name* place);
  bool Exists(const std::string& key) const;  // a key, or a non-empty queue
  Result<int64_t> NumberAfter(std::string_view operation, const std::string& key,
                              const std::string* text, int64_t delta) const;
  Result<void> Reserve(size_t more_bytes) const;
  size_t ReplyLimit() const { return std::min(largest_reply_bytes_, largest_bytes_); }
  Result<void> CheckReplySize(size_t bytes) const;
  Result<void> CheckNoticeSize(size_t bytes) const;
  static size_t NoticeBytes(const Name* place, size_t value_bytes);
  size_t GrowthOf(const std::string& key, size_t value_bytes) const;
  static size_t GrowthAt(const Name* place, size_t key_bytes, size_t value_bytes);

  // Steps of a change. The caller has checked the room with Reserve.
  Name& Touch(std::string key);
  Extras& ExtrasOf(Name& name);
  void EraseIfUnused(Name& name);
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
  void MarkNameExists(const Waiter& waiter, Replies& replies);
  void Withdraw(const Wait& wait);

  size_t largest_bytes_;
  const size_t largest_reply_bytes_;
  size_t bytes_ = 0;
  size_t key_count_ = 0;    // names that have a value
  size_t queue_count_ = 0;  // names that have a queue
  engine::NameTable names_;
  std::unordered_map<ConnectionId, std::list<Wait>> waits_;
  std::unordered_map<ConnectionId, std::vector<Watch>> watches_;
};

}  // namespace rankrun::store
