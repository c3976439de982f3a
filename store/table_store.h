#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/death_watch.h"
#include "store/file_lock.h"
#include "store/key_table.h"
#include "store/store.h"

namespace rankrun::store {

// Where a TableStore finds its data: a KeyTable that may be behind what others
// have written elsewhere.
// Thread: any.
class TableSource {
 public:
  // What a call holds while it looks at the table. Destroyed in this order:
  // the mutex is given back before the file.
  struct Session {
    std::optional<FileLock> file;  // keeps other processes out; none for a table in memory
    std::unique_lock<std::mutex> lock;
  };
  enum class Purpose { kRead, kChange };

  virtual ~TableSource() = default;

  // Makes the table current, and for kChange keeps it so as long as `session`
  // holds what it does then. Gives the locks up and takes them again; the mutex
  // is held on return, also after an error.
  virtual Result<void> Refresh(Session& session, Purpose purpose, TimePoint deadline) = 0;

  // Carries out all of `changes`, or none. `session` is one refreshed for
  // kChange.
  virtual Result<void> Commit(Session& session, std::vector<Change> changes) = 0;

  // How long at most to sleep before looking for what others have written;
  // Duration::max() if nobody writes elsewhere.
  virtual Duration LongestSleep() const = 0;

  // For how long a call that waits for nothing may wait for the source.
  virtual std::chrono::milliseconds Patience() const = 0;

  // With the mutex of a Session held.
  KeyTable& table() { return table_; }

  const DeathWatch& deaths() const { return deaths_; }

 protected:
  explicit TableSource(const DeathWatch& deaths) : deaths_(deaths) {}

  const DeathWatch deaths_;
  std::mutex mutex_;
  KeyTable table_;  // guarded by mutex_
};

// The semantics of torch.distributed.Store on a KeyTable, once for all stores
// that have one. No call holds a lock while it waits, so calls of several
// threads on one object do not wait for each other.
//
// More exact than over the wire: `swapped` of CompareSet is the truth, Get and
// QueuePop return a value that was there at one instant (over the wire it may
// go between WAIT and GET), and Get of a queue's name waits for a key of that
// name.
// Errors, besides those of store.h: kInvalid from Add when the value is no
// number; those of the source.
// Thread: any.
// Source: docs/store-protocol.md.
class TableStore : public Store {
 public:
  Result<void> Set(std::string_view key, std::string_view value) override;
  Result<std::string> Get(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<int64_t> Add(std::string_view key, int64_t delta) override;
  Result<bool> Check(std::span<const std::string> keys) override;
  Result<void> Wait(std::span<const std::string> keys, std::chrono::milliseconds timeout) override;
  Result<CompareSetResult> CompareSet(std::string_view key, std::string_view expected,
                                      std::string_view desired) override;
  Result<bool> Delete(std::string_view key) override;
  Result<void> Append(std::string_view key, std::string_view value) override;
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override;
  // All at once: nobody sees some of them only.
  Result<void> MultiSet(std::span<const std::string> keys,
                        std::span<const std::string> values) override;
  Result<int64_t> NumKeys() override;
  Result<std::vector<std::string>> ListKeys() override;
  Result<void> QueuePush(std::string_view key, std::string_view value) override;
  Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<std::optional<std::string>> TryQueuePop(std::string_view key) override;
  Result<int64_t> QueueLength(std::string_view key) override;
  // Shares the table with this one.
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                           std::chrono::milliseconds reply_timeout) override;

 protected:
  explicit TableStore(std::shared_ptr<TableSource> source) : source_(std::move(source)) {}

 private:
  using Session = TableSource::Session;
  using Purpose = TableSource::Purpose;

  Result<void> Begin(Session& session, Purpose purpose);
  Result<void> BeginWait(Session& session, Purpose purpose, TimePoint deadline);
  Result<void> Commit(Change change);
  Result<std::optional<std::string>> PopNow(Session& session, const std::string& key);
  Result<std::vector<std::string>> Await(Session& session, std::span<const std::string> keys,
                                         Among among, TimePoint deadline);

  const std::shared_ptr<TableSource> source_;  // owners: this store and its clones
};

}  // namespace rankrun::store
