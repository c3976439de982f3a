#include "agent/process/memory_events.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace rankrun::agent {
namespace {

namespace fs = std::filesystem;

// File names of one cgroup version, below the folder of a group.
struct Layout {
  const char* mount;
  const char* events;
  const char* limit;
};
constexpr Layout kVersion2{"/sys/fs/cgroup", "memory.events", "memory.max"};
constexpr Layout kVersion1{"/sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes"};

// Version 1 writes "no limit" as the largest number of pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

struct CgroupPath {
  const Layout* layout;
  std::string path;
};

// Parses lines "0::/path" (version 2) and "9:memory:/path" (version 1).
std::optional<CgroupPath> FindCgroupPath(const std::string& root) {
  std::optional<CgroupPath> found;
  std::ifstream lines(root + "/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    bool v1 = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (v1) return CgroupPath{&kVersion1, path};
    if (controllers.empty()) found = CgroupPath{&kVersion2, path};
  }
  return found;
}

// Returns the number after `key` in a file of "key number" lines.
std::optional<uint64_t> ReadKey(const fs::path& file, const std::string& key) {
  std::ifstream words(file);
  std::string name;
  for (uint64_t value; words >> name >> value;) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// Reads the kills of the group, and the lowest limit of the group and its
// visible ancestors.
std::optional<MemoryEvents> ReadCgroup(const std::string& root, const CgroupPath& cgroup) {
  fs::path top = root + cgroup.layout->mount;
  fs::path path = fs::path(cgroup.path).relative_path();
  std::optional<MemoryEvents> events;
  for (;;) {
    fs::path folder = path.empty() ? top : top / path;
    // The host's name of the group may not exist inside a container.
    auto kills = ReadKey(folder / cgroup.layout->events, "oom_kill");
    if (kills && !events)
      events = MemoryEvents{.oom_kills = *kills, .of_cgroup = true, .limit = {}};
    uint64_t limit = 0;
    bool limited = (std::ifstream(folder / cgroup.layout->limit) >> limit) && limit < kNoLimit;
    if (events && limited) events->limit = std::min(limit, events->limit.value_or(limit));
    if (path.empty()) return events;
    path = path.parent_path();
  }
}

}  // namespace

std::optional<MemoryEvents> ReadMemoryEvents(const std::string& root) {
  if (auto cgroup = FindCgroupPath(root)) {
    if (auto events = ReadCgroup(root, *cgroup)) return events;
  }
  auto kills = ReadKey(root + "/proc/vmstat", "oom_kill");
  if (!kills) return std::nullopt;
  return MemoryEvents{.oom_kills = *kills, .of_cgroup = false, .limit = {}};
}

std::optional<Space> ReadSpace(const std::string& path) {
  struct statvfs system;
  if (statvfs(path.c_str(), &system) != 0) return std::nullopt;
  return Space{.bytes = system.f_blocks * system.f_frsize,
               .available = system.f_bavail * system.f_frsize};
}

}  // namespace rankrun::agent
