#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "store/store.h"

namespace rankrun::comm {

// File in which the ranks of a world, or the FileStores of a program, meet. It counts
// its users, and the last one that leaves removes it, so that the path can be used
// again. A process that dies does not leave: then the file stays, and another run is
// refused there.
struct MeetingFile {
  std::string path;
  std::string world;    // at the head of the file; users with another text are refused
  int attempt;          // of the ranks of this attempt
  int min_leavers = 0;  // users that must have left before the file is removed
};

// Opens the file, or creates it, and counts this user.
// Errors: those of FileStore::Open; kTimeout, a process that died left it half
// removed.
Result<std::unique_ptr<store::Store>> EnterFile(const MeetingFile& file, TimePoint deadline,
                                                const DeathWatch& deaths);

// Decrements the count, and removes the file if it was the last one. Best
// effort. `store` is the result of EnterFile, and can no longer be used.
void LeaveFile(const MeetingFile& file, store::Store& store);

// A user of a file. It leaves with its destructor, unless that is in a fork.
class FileUser {
 public:
  FileUser(MeetingFile file, std::unique_ptr<store::Store> store)
      : file_(std::move(file)), store_(std::move(store)), pid_(getpid()) {}
  FileUser(const FileUser&) = delete;
  FileUser& operator=(const FileUser&) = delete;
  ~FileUser() {
    if (getpid() == pid_) LeaveFile(file_, *store_);
  }

  store::Store& store() const { return *store_; }

 private:
  const MeetingFile file_;
  const std::unique_ptr<store::Store> store_;
  const pid_t pid_;
};

}  // namespace rankrun::comm
