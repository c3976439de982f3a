#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace rankrun {

// Owner of at most one file descriptor. Thread: one at a time.
class Fd {
 public:
  static constexpr int kNone = -1;

  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ != kNone; }
  int Release() { return std::exchange(fd_, kNone); }

  // After EINTR from close(), Linux has closed the descriptor; do not retry.
  void Reset(int fd = kNone) {
    if (fd_ != kNone) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = kNone;
};

// Returns whether this program opened a descriptor. All of those are
// close-on-exec, and an inherited one never is.
inline bool IsOurs(int fd) {
  int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

}  // namespace rankrun
