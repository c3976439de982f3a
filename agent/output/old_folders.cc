#include "agent/output/old_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>

#include "agent/job/kept_entries.h"
#include "agent/output/folder_mark.h"
#include "base/fd.h"

namespace rankrun::agent {
namespace {

using std::chrono::system_clock;

constexpr int kMaxDepth = 16;  // of folders in the folder of a job; PyTorch's have fewer
constexpr size_t kMaxMarkBytes = 1024;
constexpr size_t kAllYoung = std::numeric_limits<size_t>::max();  // they may have logs in use

struct MarkedFolder {
  Fd folder;
  FolderMark mark;
};

// Calls `visit` with each entry, until it returns false.
void ForEachEntry(const Fd& folder, const std::function<bool(const dirent&)>& visit) {
  const int copy = openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* names = copy < 0 ? nullptr : fdopendir(copy);
  if (names == nullptr) {
    Fd closes(copy);
    return;
  }
  while (const dirent* entry = readdir(names)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(*entry)) break;
  }
  closedir(names);
}

// Opens a folder of `owner` on the same file system.
Fd OpenBelow(const Fd& above, const char* name, uid_t owner) {
  Fd folder(openat(above.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {
  }, of_above{};
  const bool is_ours = folder && fstat(folder.get(), &status) == 0 &&
                       fstat(above.get(), &of_above) == 0 && status.st_uid == owner &&
                       status.st_dev == of_above.st_dev;
  return is_ours ? std::move(folder) : Fd();
}

enum class What { kPipesAndEmptyFolders, kAll };

bool IsPipe(const Fd& folder, const char* name) {
  struct stat status {};
  return fstatat(folder.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Removes entries, but neither the folder itself nor its mark.
void RemoveBelow(const Fd& folder, What what, TimePoint deadline, int depth = 0) {
  struct stat status {};
  if (fstat(folder.get(), &status) != 0) return;
  ForEachEntry(folder, [&](const dirent& entry) {
    const char* name = entry.d_name;
    if (depth == 0 && name == std::string_view(kFolderMark)) return true;
    if (Fd below = OpenBelow(folder, name, status.st_uid)) {
      if (depth < kMaxDepth) RemoveBelow(below, what, deadline, depth + 1);
      unlinkat(folder.get(), name, AT_REMOVEDIR);  // if it is empty now
    } else if (what == What::kAll || IsPipe(folder, name)) {
      unlinkat(folder.get(), name, 0);
    }
    return std::chrono::steady_clock::now() < deadline;
  });
}

bool HasEntries(const Fd& folder) {
  bool has_entries = false;
  ForEachEntry(folder, [&](const dirent& entry) {
    has_entries = entry.d_name != std::string_view(kFolderMark);
    return !has_entries;
  });
  return has_entries;
}

// Returns whether it is gone. Its mark goes last, so that another run can continue.
bool RemoveMarked(const Fd& parent, const std::string& name, const Fd& folder) {
  if (HasEntries(folder)) return false;
  unlinkat(folder.get(), kFolderMark, 0);
  return unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
}

bool HasName(std::string_view name) {
  constexpr std::string_view kPrefix = "rankrun-";
  constexpr size_t kRandom = 6;
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandom &&
         std::ranges::all_of(name.substr(kPrefix.size()),
                             [](unsigned char c) { return std::isalnum(c) != 0; });
}

std::optional<FolderMark> MarkAt(const Fd& folder, const std::string& path) {
  char text[kMaxMarkBytes];
  const ssize_t count = readlinkat(folder.get(), path.c_str(), text, sizeof text);
  const bool is_whole = count > 0 && static_cast<size_t>(count) < sizeof text;
  return is_whole ? DecodeMark({text, static_cast<size_t>(count)}) : std::nullopt;
}

// Whether the folder was left to its user lately. There may be many of them: one call looks.
bool IsKept(const Fd& parent, const std::string& name, system_clock::time_point now) {
  const auto mark = MarkAt(parent, name + "/" + kFolderMark);
  return mark && mark->ended && !IsTooOld(*mark->ended, now);
}

std::optional<MarkedFolder> OpenMarked(const Fd& parent, const char* name) {
  // First, because a link of another user may lead to a server that does not answer.
  struct stat status {};
  const bool is_own =
      fstatat(parent.get(), name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
      S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  if (!is_own) return std::nullopt;
  Fd folder = OpenBelow(parent, name, geteuid());
  const bool is_private =
      folder && fstat(folder.get(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  const bool has_own_mark = is_private &&
                            fstatat(folder.get(), kFolderMark, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                            status.st_uid == geteuid();
  const auto mark = has_own_mark ? MarkAt(folder, kFolderMark) : std::nullopt;
  if (!mark) return std::nullopt;
  return MarkedFolder{std::move(folder), *mark};
}

}  // namespace

bool LeaveFolder(const std::string& path) {
  const std::filesystem::path whole(path);
  Fd parent(open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && errno == ENOENT) return false;
  if (!parent || !folder) return true;
  RemoveBelow(folder, What::kPipesAndEmptyFolders, TimePoint::max());
  if (RemoveMarked(parent, whole.filename(), folder)) return false;
  static_cast<void>(
      WriteMark(folder.get(), ".",
                {.ended = floor<std::chrono::seconds>(
                     system_clock::now())}));  // without one, the folder stays until it is removed
  return true;
}

void ClaimFolder(const std::string& path) {
  std::error_code unknown;
  std::filesystem::path folder = std::filesystem::canonical(path, unknown);
  if (unknown) folder = path;
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const std::string mark = folder / kFolderMark;
    std::error_code none;
    if (DecodeMark(std::filesystem::read_symlink(mark, none))) unlink(mark.c_str());
  }
}

std::vector<std::string> RemoveOldFolders(const std::string& parent, system_clock::time_point now,
                                          TimePoint deadline) {
  std::vector<std::string> abandoned;
  std::vector<KeptEntry> kept;
  Fd above(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above) return abandoned;
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  ForEachEntry(above, [&](const dirent& entry) {
    const char* name = entry.d_name;
    if (!HasName(name)) return in_time();
    if (entry.d_type == DT_DIR && IsKept(above, name, now)) return in_time();
    auto marked = OpenMarked(above, name);
    if (!marked) return in_time();
    if (marked->mark.ended) {
      kept.push_back({name, *marked->mark.ended});
    } else if (UsersAreGone(marked->mark)) {
      RemoveBelow(marked->folder, What::kPipesAndEmptyFolders, deadline);
      if (RemoveMarked(above, name, marked->folder)) return in_time();
      marked->mark.ended = floor<std::chrono::seconds>(now);
      if (WriteMark(marked->folder.get(), ".", marked->mark))
        abandoned.push_back(parent + "/" + name);
    }
    return in_time();
  });
  for (const std::string& name : EntriesToRemove(std::move(kept), now, kAllYoung)) {
    auto marked = in_time() ? OpenMarked(above, name.c_str()) : std::nullopt;
    if (!marked) continue;
    RemoveBelow(marked->folder, What::kAll, deadline);
    RemoveMarked(above, name, marked->folder);
  }
  return abandoned;
}

}  // namespace rankrun::agent
