#include "store/clients/file_lock.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"

namespace rankrun::store {
namespace {

using std::chrono::microseconds;

// A holder keeps the lock for microseconds, so the first pauses are short.
constexpr microseconds kFirstPause{20};
constexpr microseconds kMaxPause{2'000};

int SetLock(int fd, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = kLockedBytes;
  return fcntl(fd, F_OFD_SETLK, &lock);
}

}  // namespace

Result<FileLock> FileLock::Acquire(Fd file, TimePoint deadline, const DeathWatch& deaths) {
  TimePoint start = MonotonicClock().Now();
  Duration pause = kFirstPause;
  // Polls, because F_OFD_SETLKW has no deadline.
  while (SetLock(file.get(), F_WRLCK) != 0) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return SystemError("lock", errno);
    TimePoint now = MonotonicClock().Now();
    if (now >= deadline) {
      return Error{ErrorCode::kTimeout, "lock: another process has held the lock for " +
                                            FormatSeconds(now - start) + "; is it stopped?"};
    }
    if (deaths.has_death()) return deaths.ErrorSince(start).In("lock");
    deaths.SleepUntil(std::min(now + pause, deadline));
    pause = std::min<Duration>(pause * 3 / 2, kMaxPause);
  }
  return FileLock(std::move(file));
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  Release();
  file_ = std::move(other.file_);
  return *this;
}

// Unlocks explicitly, because close() alone would leave the lock to a process
// forked meanwhile.
void FileLock::Release() {
  if (!file_) return;
  SetLock(file_.get(), F_UNLCK);
  file_.Reset();
}

}  // namespace rankrun::store
