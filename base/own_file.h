#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/own_path.h"
#include "base/result.h"

// Files that a program writes for its user; base/own_path.h has the rules for links.
namespace rankrun {

constexpr mode_t kOwnerOnly = 0600;  // the output of a job may be confidential

// Opens a file as open(2) does, with O_CLOEXEC. A new file gets `mode`. Refuses a file or named
// pipe of another user, and in a folder that other users may change, a file with a second name.
// Truncates only after these checks. With O_NOFOLLOW, refuses all links at the end of the path.
// Errors: kInvalid for a file or link of another user; those of SystemError.
Result<Fd> OpenOwnFile(const std::string& path, int flags, mode_t mode = kOwnerOnly);

// A file that comes into its place only once it is complete. Until then, it lies beside its place
// under a random name. The destructor removes an incomplete one.
class FileDraft {
 public:
  // Prepares a file that replaces whatever has its name.
  // Errors: those of FindOwnPlace.
  static Result<FileDraft> Create(const std::string& path, mode_t mode = kOwnerOnly);
  // Prepares output for a name that the user typed. A link of the user stays, and its target is
  // replaced; a file that is there keeps its mode. A pipe or device is written at once.
  // Errors: as above, and kInvalid for a file of another user.
  static Result<FileDraft> CreateOutput(const std::string& path);
  FileDraft(FileDraft&& other) noexcept;
  FileDraft& operator=(FileDraft&&) = delete;
  ~FileDraft();

  int fd() const { return fd_.get(); }
  // Puts the file into its place. Errors: those of SystemError.
  Result<void> Finish();
  // Like Finish, but leaves a file that is there. Errors: as above.
  Result<void> FinishIfAbsent();

 private:
  FileDraft(std::string path, OwnPlace place) : path_(std::move(path)), place_(std::move(place)) {}
  Result<void> Open(mode_t mode);

  std::string path_;
  OwnPlace place_;
  std::string draft_;  // name of the file that is to be removed; empty: none
  Fd fd_;
};

// Writes a file that replaces whatever has its name, once it is complete.
// Errors: those of FileDraft::Create and TryWriteAll; a file that was there is as before.
Result<void> ReplaceFile(const std::string& path, std::string_view text, mode_t mode = kOwnerOnly);

// Writes a whole output file, pipe or device that the user named.
// Errors: those of FileDraft::CreateOutput and TryWriteAll; a file that was there is as before.
Result<void> WriteOutput(const std::string& path, std::string_view text);

}  // namespace rankrun
