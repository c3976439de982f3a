#include "agent/health/proc_tables.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <vector>

namespace rankrun::agent {
namespace {

// The table has a space as "\040".
std::string Unescaped(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i + 1, 3);
    if (text[i] == '\\' && digits.size() == 3 && std::ranges::all_of(digits, is_octal)) {
      plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
      i += digits.size();
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "36 35 98:0 /root /mnt/data rw,noatime master:1 - nfs4 nas:/export rw"
std::optional<Mount> MountIn(const std::string& line) {
  std::istringstream words(line);
  Mount mount;
  std::string parent, device, root, word;
  if (!(words >> mount.id >> parent >> device >> root >> mount.point)) return std::nullopt;
  while (words >> word && word != "-") {
  }
  if (!(words >> mount.type >> mount.source)) return std::nullopt;
  mount.point = Unescaped(mount.point);
  mount.source = Unescaped(mount.source);
  return mount;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  if (folder == "/") return path.starts_with('/');
  return path == folder || path.starts_with(folder + "/");
}

// Returns a lock's number, and its words after that. "1: -> FLOCK  ADVISORY  WRITE 42 fe:00:7 0
// EOF"
struct LockLine {
  std::string number{};
  bool waits = false;
  pid_t pid = 0;
};
LockLine LockIn(const std::string& text) {
  std::istringstream stream(text);
  LockLine line;
  std::string kind, strength, access;
  stream >> line.number >> kind;
  line.waits = kind == "->";
  if (line.waits) stream >> kind;
  stream >> strength >> access >> line.pid;
  return line;
}

}  // namespace

std::optional<Mount> MountWithId(const std::string& table, int id) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    auto mount = MountIn(line);
    if (mount && mount->id == id) return mount;
  }
  return std::nullopt;
}

std::optional<Mount> MountOfPath(const std::string& table, const std::string& path) {
  std::istringstream lines(table);
  std::optional<Mount> best;
  for (std::string line; std::getline(lines, line);) {
    auto mount = MountIn(line);
    if (!mount || !IsBelow(path, mount->point)) continue;
    if (!best || mount->point.size() >= best->point.size()) best = std::move(mount);
  }
  return best;
}

std::string ServerInWords(const Mount& mount) {
  constexpr std::array<std::string_view, 15> kOthers = {
      "9p",     "afs",   "beegfs",   "ceph",  "coda",  "gfs2",     "glusterfs", "gpfs",
      "lustre", "ocfs2", "orangefs", "panfs", "pvfs2", "virtiofs", "wekafs"};
  if (mount.type == "nfs" || mount.type == "nfs4") return "on the NFS server " + mount.source;
  if (mount.type == "cifs" || mount.type == "smb3" || mount.type == "smbfs") {
    return "on the SMB server " + mount.source;
  }
  const bool is_fuse = mount.type == "fuse" || mount.type.starts_with("fuse.");
  if (!is_fuse && std::ranges::find(kOthers, mount.type) == kOthers.end()) return "";
  return "on " + mount.type + " (" + mount.source + ")";
}

std::optional<pid_t> LockHolder(const std::string& table, pid_t waiter) {
  std::istringstream lines(table);
  LockLine holder;
  for (std::string text; std::getline(lines, text);) {
    LockLine line = LockIn(text);
    if (!line.waits) {
      holder = std::move(line);
    } else if (line.pid == waiter && line.number == holder.number && holder.pid > 0) {
      return holder.pid;
    }
  }
  return std::nullopt;
}

}  // namespace rankrun::agent
