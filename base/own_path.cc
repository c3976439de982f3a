#include "base/own_path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <optional>
#include <utility>

#include "base/random_bytes.h"

namespace rankrun {
namespace {

constexpr int kMaxLinks = 40;  // as Linux has
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Whether the user namespace of this process has no root. Files of the system's root then have the
// same owner as those of all other users that it does not know.
bool LacksRoot() {
  std::ifstream map("/proc/self/uid_map");
  uid_t first = 0;
  uid_t outside = 0;
  uid_t count = 0;
  bool has_line = false;
  while (map >> first >> outside >> count) {
    if (first == 0) return false;
    has_line = true;
  }
  return has_line;
}

uid_t UnknownUser() {
  uid_t user = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> user;
  return user;
}

// Returns the owner that a new file in this folder gets.
std::optional<uid_t> OwnerOfNewFile(const Fd& folder) {
  const std::string name = DraftNameOf(".rankrun");
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd file(openat(folder.get(), name.c_str(), kFlags, 0600));
  if (!file) return std::nullopt;
  struct stat status;
  const bool is_known = fstat(file.get(), &status) == 0;
  unlinkat(folder.get(), name.c_str(), 0);
  return is_known ? std::optional(status.st_uid) : std::nullopt;
}

bool IsInProc(const Fd& entry) {
  struct statfs system;
  return fstatfs(entry.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// One way along a path.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path), action_(path), rest_(path) {}
  // Goes into the folder at the end of the path, too. With `mode`, makes the folders that are
  // missing.
  Walk(const std::string& path, std::optional<mode_t> mode)
      : path_(path),
        action_(mode ? "create the folder " + path : path),
        rest_(path.empty() ? "" : path + "/."),
        folder_mode_(mode) {}

  Result<OwnPlace> ToLastName(LastLink last) {
    if (auto begun = Begin(); !begun) return std::move(begun).error();
    for (;;) {
      const std::string name = TakeName();
      if (!rest_.empty()) {
        if (auto entered = Enter(name); !entered) return std::move(entered).error();
        continue;
      }
      Fd entry(openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!entry && errno != ENOENT) return Failure();
      struct stat status {};
      if (entry && fstat(entry.get(), &status) != 0) return Failure();
      if (last == LastLink::kKeep || !S_ISLNK(status.st_mode)) return Place(name, false);
      if (IsInProc(entry)) return Place(name, true);
      if (auto followed = Follow(name, entry, status); !followed) {
        return std::move(followed).error();
      }
    }
  }

 private:
  Error Failure() const { return SystemError(action_, errno); }
  OwnPlace Place(const std::string& name, bool is_descriptor) {
    return {.folder = std::move(at_), .name = name, .is_descriptor = is_descriptor};
  }

  // Opens the folder at which the rest of the path begins.
  Result<void> Begin() {
    if (path_.empty()) return SystemError("\"\"", ENOENT);
    at_.Reset(open(rest_.starts_with('/') ? "/" : ".", kFolderFlags));
    rest_.erase(0, rest_.find_first_not_of('/'));
    if (!at_) return Failure();
    return {};
  }

  // Removes the first name from the rest. Returns "." for an empty path, and leaves "." behind a
  // name that a slash follows.
  std::string TakeName() {
    const size_t end = std::min(rest_.find('/'), rest_.size());
    std::string name = rest_.substr(0, end);
    const bool has_slash = end < rest_.size();
    rest_.erase(0, std::min(rest_.find_first_not_of('/', end), rest_.size()));
    if (has_slash && rest_.empty()) rest_ = ".";
    return name.empty() ? "." : name;
  }

  // With O_DIRECTORY at once, because a folder of autofs is mounted only then.
  Result<void> Enter(const std::string& name) {
    Fd folder(openat(at_.get(), name.c_str(), kFolderFlags | O_NOFOLLOW));
    if (!folder && errno == ENOENT && folder_mode_) {
      if (mkdirat(at_.get(), name.c_str(), *folder_mode_) != 0 && errno != EEXIST) {
        return Failure();
      }
      folder.Reset(openat(at_.get(), name.c_str(), kFolderFlags | O_NOFOLLOW));
    }
    if (folder) {
      at_ = std::move(folder);
      return {};
    }
    if (errno != ENOTDIR && errno != ELOOP) return Failure();
    Fd entry(openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    if (!entry || fstat(entry.get(), &status) != 0) return Failure();
    if (!S_ISLNK(status.st_mode)) return SystemError(action_, ENOTDIR);
    if (!IsInProc(entry)) return Follow(name, entry, status);
    folder.Reset(openat(at_.get(), name.c_str(), kFolderFlags));
    if (!folder) return Failure();
    at_ = std::move(folder);
    return {};
  }

  Result<void> Follow(const std::string& name, const Fd& link, const struct stat& status) {
    if (++links_ > kMaxLinks) return SystemError(action_, ELOOP);
    struct stat folder;
    if (fstat(at_.get(), &folder) != 0) return Failure();
    const bool is_above = !rest_.empty();
    const bool is_of_folder = is_above && status.st_uid == folder.st_uid;
    if (!is_of_folder && !IsOwn(status.st_uid, at_)) {
      return Error{ErrorCode::kInvalid, path_ + ": " + name + " is a link of user " +
                                            std::to_string(status.st_uid) +
                                            ", want a path without links of other users"};
    }
    char target[PATH_MAX];
    const ssize_t size = readlinkat(link.get(), "", target, sizeof target);
    if (size < 0) return Failure();
    std::string whole(target, static_cast<size_t>(size));
    if (is_above) whole += "/" + rest_;
    rest_ = std::move(whole);
    return rest_.starts_with('/') ? Begin() : Result<void>();
  }

  const std::string path_;
  const std::string action_;  // for messages
  std::string rest_;
  const std::optional<mode_t> folder_mode_ = {};
  Fd at_;
  int links_ = 0;
};

}  // namespace

bool IsOwnUserOrSystem(uid_t user) {
  return user == geteuid() || user == 0 || (LacksRoot() && user == UnknownUser());
}

bool IsOwn(uid_t owner, const Fd& folder) {
  return IsOwnUserOrSystem(owner) || OwnerOfNewFile(folder) == owner;
}

std::string DraftNameOf(const std::string& name) {
  constexpr size_t kMaxBytes = 200;  // file systems allow 255
  unsigned char random[8] = {};
  std::string draft = name.substr(0, kMaxBytes) + ".";
  if (!FillRandom(random)) return draft + "0.tmp";
  for (unsigned char byte : random) {
    draft += "0123456789abcdef"[byte >> 4];
    draft += "0123456789abcdef"[byte & 0xF];
  }
  return draft + ".tmp";
}

Result<OwnPlace> FindOwnPlace(const std::string& path, LastLink last) {
  return Walk(path).ToLastName(last);
}

Result<void> MakeOwnFolders(const std::string& path, mode_t mode) {
  auto folder = Walk(path, mode).ToLastName(LastLink::kKeep);
  if (!folder) return std::move(folder).error();
  return {};
}

Result<void> CheckOwnFolder(const std::string& path) {
  auto place = Walk(path, std::nullopt).ToLastName(LastLink::kKeep);
  if (!place) return std::move(place).error();
  struct stat status;
  if (fstat(place->folder.get(), &status) != 0) return SystemError(path, errno);
  if (IsOwn(status.st_uid, place->folder)) return {};
  return Error{ErrorCode::kInvalid, path + ": belongs to user " + std::to_string(status.st_uid) +
                                        ", want a folder of user " + std::to_string(geteuid())};
}

}  // namespace rankrun
