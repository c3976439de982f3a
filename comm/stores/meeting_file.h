#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "store/clients/file_presence.h"
#include "store/store.h"

namespace rankrun::comm {

// File in which the ranks of a world, or the FileStores of a program, meet. It counts
// its users, and the last one that leaves removes it, so that the path can be used
// again. A process that dies does not leave: then the file stays, and ranks that come later
// are refused there.
struct MeetingFile {
  std::string path;
  std::string world;    // at the head of the file; users with another text are refused
  int attempt;          // of the ranks of this attempt
  int min_leavers = 0;  // users that must have left before the file is removed
  // Name of this user in errors: if it ends without leaving, later users are refused by that
  // name. Empty: they are not refused.
  std::string user = {};
  // Set by EnterFile.
  std::string age = {};               // "last written 3 h ago": before this user wrote to it
  int64_t number = 0;                 // of this user
  store::FilePresence presence = {};  // until the user has left
};

// Opens the file, or creates it, and counts this user.
// Errors: those of FileStore::Open; kInvalid, a user of this attempt has ended without
// leaving, or while it removed the file; kTimeout, the process that removes it is stopped.
Result<std::unique_ptr<store::Store>> EnterFile(MeetingFile& file, TimePoint deadline,
                                                const DeathWatch& deaths);

// Adds `what` to the name of this user, for errors after its end. Best effort.
void NoteInFile(const MeetingFile& file, store::Store& store, const std::string& what);

// Decrements the count, and removes the file if it was the last one. Best
// effort. `store` is the result of EnterFile, and can no longer be used.
void LeaveFile(MeetingFile& file, store::Store& store);

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
  MeetingFile file_;
  const std::unique_ptr<store::Store> store_;
  const pid_t pid_;
};

}  // namespace rankrun::comm
