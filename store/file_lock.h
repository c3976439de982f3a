#pragma once

#include <string>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::store {

// The exclusive lock of a file that was opened for this lock alone. Keeps out
// every other FileLock of the file, in other processes and in this one. The
// kernel takes it back when the process ends in any way.
//
// It is a lock of the open file (F_OFD_SETLK): a process forked meanwhile has
// it too, but only until the holder is done, unless the holder is killed in
// that very moment.
// Thread: one at a time.
class FileLock {
 public:
  // Waits for the lock until `deadline`; tries once at least. `file` must be
  // open for writing. Errors: kTimeout; kCancelled when `deaths` hears of one;
  // kSystem where the file system knows no locks.
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
