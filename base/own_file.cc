#include "base/own_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/write_all.h"

namespace rankrun {
namespace {

constexpr mode_t kAllModes = 0777;

// Whether other users may put a file into the folder.
bool IsShared(const Fd& folder) {
  struct stat status;
  if (fstat(folder.get(), &status) != 0) return true;
  return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || !IsOwn(status.st_uid, folder);
}

Result<void> CheckOwner(const std::string& path, const struct stat& status, const Fd& folder) {
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) return {};
  if (IsOwn(status.st_uid, folder)) return {};
  return Error{ErrorCode::kInvalid, path + ": belongs to user " + std::to_string(status.st_uid) +
                                        ", want a file of user " + std::to_string(geteuid())};
}

// Refuses a file of another user before it is opened, because opening a pipe could block. The
// file may still change until then.
Result<void> CheckBeforeOpening(const std::string& path, const OwnPlace& place) {
  struct stat status;
  const int found = fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  return found == 0 ? CheckOwner(path, status, place.folder) : Result<void>();
}

Result<void> CheckFile(const std::string& path, const Fd& file, const Fd& folder) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) return SystemError(path, errno);
  if (auto own = CheckOwner(path, status, folder); !own) return own;
  if (!S_ISREG(status.st_mode) || status.st_nlink <= 1 || !IsShared(folder)) return {};
  return Error{ErrorCode::kInvalid, path +
                                        ": has a second name (a hard link), which another user "
                                        "may have made; want a file with one name"};
}

}  // namespace

Result<Fd> OpenOwnFile(const std::string& path, int flags, mode_t mode) {
  const bool keeps_link = (flags & O_NOFOLLOW) != 0;
  auto place = FindOwnPlace(path, keeps_link ? LastLink::kKeep : LastLink::kFollow);
  if (!place) return std::move(place).error();
  const int at = place->folder.get();
  const int follow = place->is_descriptor ? 0 : O_NOFOLLOW;
  const int opened = (flags & ~(O_TRUNC | O_NOFOLLOW)) | O_CLOEXEC | follow;
  if (!place->is_descriptor) {
    if (auto own = CheckBeforeOpening(path, *place); !own) return std::move(own).error();
  }
  Fd file(openat(at, place->name.c_str(), opened, mode));
  if (!file) return SystemError(path, errno);
  if (place->is_descriptor) return file;
  if (auto own = CheckFile(path, file, place->folder); !own) return std::move(own).error();
  struct stat status;
  const bool truncates = (flags & O_TRUNC) != 0 && fstat(file.get(), &status) == 0 &&
                         S_ISREG(status.st_mode) && status.st_size > 0;
  if (truncates && ftruncate(file.get(), 0) != 0) return SystemError(path, errno);
  return file;
}

FileDraft::FileDraft(FileDraft&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      draft_(std::exchange(other.draft_, {})),
      fd_(std::move(other.fd_)) {}

FileDraft::~FileDraft() {
  if (!draft_.empty()) unlinkat(place_.folder.get(), draft_.c_str(), 0);
}

Result<void> FileDraft::Open(mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const std::string name = DraftNameOf(place_.name);
  fd_.Reset(openat(place_.folder.get(), name.c_str(), kFlags, kOwnerOnly));
  if (!fd_) return SystemError("create a file beside " + path_, errno);
  draft_ = name;
  if (mode != kOwnerOnly && fchmod(fd_.get(), mode) != 0) {
    return SystemError("set the mode of " + path_, errno);
  }
  return {};
}

Result<FileDraft> FileDraft::Create(const std::string& path, mode_t mode) {
  auto place = FindOwnPlace(path, LastLink::kKeep);
  if (!place) return std::move(place).error();
  FileDraft draft(path, std::move(*place));
  if (auto opened = draft.Open(mode); !opened) return std::move(opened).error();
  return draft;
}

Result<FileDraft> FileDraft::CreateOutput(const std::string& path) {
  auto place = FindOwnPlace(path, LastLink::kFollow);
  if (!place) return std::move(place).error();
  FileDraft draft(path, std::move(*place));
  const int at = draft.place_.folder.get();
  const std::string& name = draft.place_.name;
  const bool follows = draft.place_.is_descriptor;
  struct stat status;
  if (fstatat(at, name.c_str(), &status, follows ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) return SystemError(path, errno);
    status.st_mode = S_IFREG | kOwnerOnly;
  } else if (auto own = CheckOwner(path, status, draft.place_.folder); !follows && !own) {
    return std::move(own).error();
  }
  if (S_ISREG(status.st_mode) && !follows) {
    if (auto opened = draft.Open(status.st_mode & kAllModes); !opened) {
      return std::move(opened).error();
    }
    return draft;
  }
  // A shell may have opened the descriptor for appending.
  const int more = follows ? O_APPEND : O_NOFOLLOW;
  draft.fd_.Reset(openat(at, name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | more));
  if (!draft.fd_) return SystemError("open " + path, errno);
  return draft;
}

Result<void> FileDraft::Finish() {
  if (draft_.empty()) return {};
  const int at = place_.folder.get();
  if (renameat(at, draft_.c_str(), at, place_.name.c_str()) != 0) {
    return SystemError("create " + path_, errno);
  }
  draft_.clear();
  return {};
}

Result<void> FileDraft::FinishIfAbsent() {
  const int at = place_.folder.get();
  if (linkat(at, draft_.c_str(), at, place_.name.c_str(), 0) != 0 && errno != EEXIST) {
    return SystemError("create " + path_, errno);
  }
  return {};
}

Result<void> ReplaceFile(const std::string& path, std::string_view text, mode_t mode) {
  auto draft = FileDraft::Create(path, mode);
  if (!draft) return std::move(draft).error();
  auto written = TryWriteAll(draft->fd(), text);
  if (!written) return std::move(written).error().In("write " + path);
  return draft->Finish();
}

Result<void> WriteOutput(const std::string& path, std::string_view text) {
  auto draft = FileDraft::CreateOutput(path);
  if (!draft) return std::move(draft).error();
  auto written = TryWriteAll(draft->fd(), text);
  if (!written) return std::move(written).error().In("write " + path);
  return draft->Finish();
}

}  // namespace rankrun
