#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status/death_watch.h"
#include "store/clients/file_lock.h"
#include "store/clients/key_table.h"
#include "store/store.h"

namespace rankrun::store {

// Data of a TableStore: a KeyTable that may lag behind changes by other
// processes.
// Thread: any.
class TableSource {
 public:
  // Locks that a call holds while it uses the table: the mutex, and for a change
  // also the file. The destructor releases the mutex before the file.
  class SCOPED_CAPABILITY Session {
   public:
    explicit Session(TableSource& source) ACQUIRE(source.mutex_) : lock_(source.mutex_) {}
    ~Session() RELEASE() {}

    std::optional<FileLock> file;  // excludes other processes; none for a table in memory

   private:
    MutexLock lock_;
  };
  enum class Purpose { kRead, kChange };

  virtual ~TableSource() = default;

  // Applies all changes of other processes to the table. After kChange the
  // table stays current while `session` holds its locks. The locks are released
  // meanwhile. On return, also after an error, the mutex is held.
  virtual Result<void> Refresh(Session& session, Purpose purpose, TimePoint deadline)
      REQUIRES(mutex_) = 0;

  // Carries out all of `changes`, or none. `session` must have been refreshed
  // for kChange.
  virtual Result<void> Commit(Session& session, std::vector<Change> changes) REQUIRES(mutex_) = 0;

  // Returns the longest sleep between two checks for changes by other
  // processes; Duration::max() if there are no other writers.
  virtual Duration LongestSleep() const = 0;

  // Returns how long a call without a time-out of its own may wait for the
  // source.
  virtual std::chrono::milliseconds LockTimeout() const = 0;

  KeyTable& table() REQUIRES(mutex_) { return table_; }
  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }

  const DeathWatch& deaths() const { return deaths_; }

 protected:
  explicit TableSource(const DeathWatch& deaths) : deaths_(deaths) {}

  const DeathWatch deaths_;
  Mutex mutex_;
  KeyTable table_ GUARDED_BY(mutex_);
};

// The semantics of torch.distributed.Store on a KeyTable. No call holds a lock
// while it waits, so calls of several threads on one object do not block each
// other.
//
// More exact than TcpStore: `swapped` of CompareSet is exact; Get and QueuePop
// return a value that existed at one instant (over the wire it may be deleted
// between WAIT and GET); Get with the name of a queue waits for a key of that
// name.
// Errors, besides those of store.h: kInvalid from Add when the value is not a
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
  // Sets all keys atomically.
  Result<void> MultiSet(std::span<const std::string> keys,
                        std::span<const std::string> values) override;
  Result<int64_t> NumKeys() override;
  Result<std::vector<std::string>> ListKeys() override;
  Result<void> QueuePush(std::string_view key, std::string_view value) override;
  Result<std::string> QueuePop(std::string_view key, std::chrono::milliseconds timeout) override;
  Result<std::optional<std::string>> TryQueuePop(std::string_view key) override;
  Result<int64_t> QueueLength(std::string_view key) override;
  // The clone shares the table with this store.
  Result<std::unique_ptr<Store>> CloneWith(std::chrono::milliseconds timeout,
                                           std::chrono::milliseconds reply_timeout) override;

 protected:
  explicit TableStore(std::shared_ptr<TableSource> source) : source_(std::move(source)) {}

 private:
  using Session = TableSource::Session;
  using Purpose = TableSource::Purpose;

  Result<void> Begin(Session& session, Purpose purpose) REQUIRES(source_->mutex());
  Result<void> BeginWait(Session& session, Purpose purpose, TimePoint deadline)
      REQUIRES(source_->mutex());
  Result<void> Commit(Change change);
  Result<std::optional<std::string>> PopNow(Session& session, const std::string& key)
      REQUIRES(source_->mutex());
  Result<std::vector<std::string>> Await(Session& session, std::span<const std::string> keys,
                                         LookupScope scope, TimePoint deadline)
      REQUIRES(source_->mutex());

  const std::shared_ptr<TableSource> source_;  // owners: this store and its clones
};

}  // namespace rankrun::store
