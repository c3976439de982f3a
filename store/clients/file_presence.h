#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun::store {

// Shows the users of a file which other users live: a user holds a lock of a byte far
// behind the end of the file, and the kernel releases it when the process ends, however it
// ends. A child that the process has forked keeps the lock.
// Thread: one at a time.
class FilePresence {
 public:
  FilePresence() = default;  // shows nothing
  // Shows that the user of that number lives, until the object is destroyed. No other user of
  // the file has the number.
  // Errors: kPeerLost, the file was removed or replaced; kSystem, also on a file system
  // without locks.
  static Result<FilePresence> Show(const std::string& path, int64_t user);

  // Returns whether that user of the file lives, or a process that it has forked.
  // Errors: as Show.
  static Result<bool> Lives(const std::string& path, int64_t user);

 private:
  explicit FilePresence(Fd file) : file_(std::move(file)) {}

  Fd file_;
};

}  // namespace rankrun::store
