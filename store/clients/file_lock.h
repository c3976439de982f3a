#pragma once

#include <sys/types.h>

#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/status/death_watch.h"

namespace rankrun::store {

// A FileLock covers this many bytes; those behind them are FilePresence's.
constexpr off_t kLockedBytes = off_t{1} << 62;

// Exclusive lock of a file that was opened for this lock alone. It excludes
// every other FileLock of the file, in other processes and in this one. The
// kernel releases it when the process ends for any reason.
//
// It is a lock of the open file description (F_OFD_SETLK), so a process forked
// meanwhile shares it. The holder's release frees it for both. Only if the
// holder is killed with the lock held does the child keep it.
// Thread: one at a time.
class FileLock {
 public:
  // Waits for the lock until `deadline`, with at least one attempt. `file` must
  // be open for writing.
  // Errors: kTimeout; kCancelled when `deaths` reports one; kSystem on a file
  // system without locks.
  static Result<FileLock> Acquire(Fd file, TimePoint deadline, const DeathWatch& deaths = {});

  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock() { Release(); }

  int fd() const { return file_.get(); }

 private:
  explicit FileLock(Fd file) : file_(std::move(file)) {}
  void Release();

  Fd file_;
};

}  // namespace rankrun::store
