#include "base/process/cpu_limit.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/parse_number.h"

namespace rankrun {
namespace {

// A mounted hierarchy of control groups that may limit CPUs.
struct Hierarchy {
  bool is_v2;
  std::string top;    // path of the group at the mount point
  std::string mount;  // the mount point
};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

bool HasCpu(const std::string& list) { return std::ranges::count(Split(list, ','), "cpu") > 0; }

// Reads a line of /proc/self/mountinfo:
// "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu".
std::optional<Hierarchy> ParseMount(const std::string& line) {
  if (line.find(" - cgroup") == line.npos) return std::nullopt;  // most lines
  std::vector<std::string> words = Split(line, ' ');
  auto dash = std::ranges::find(words, "-");
  if (dash - words.begin() < 5 || words.end() - dash < 4) return std::nullopt;
  bool is_v2 = dash[1] == "cgroup2";
  if (!is_v2 && (dash[1] != "cgroup" || !HasCpu(dash[3]))) return std::nullopt;
  return Hierarchy{is_v2, words[3], words[4]};
}

// Returns the path of our group below the mount point. It is empty for a group
// outside of the mount, whose nearest visible group is the mount point.
std::string PathWithin(const Hierarchy& hierarchy, const std::string& group) {
  std::string top = hierarchy.top == "/" ? "" : hierarchy.top;
  bool is_within = group == top || group.starts_with(top + "/");
  if (!is_within || group.find("/..") != std::string::npos) return "";
  std::string path = group.substr(top.size());
  return path == "/" ? "" : path;
}

// Returns our group in the hierarchy, by lines of /proc/self/cgroup: "0::/a/b",
// "4:cpu,cpuacct:/a/b".
std::optional<std::string> OurGroup(const Hierarchy& hierarchy,
                                    const std::vector<std::string>& groups) {
  for (const std::string& line : groups) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    bool is_it = hierarchy.is_v2 ? controllers.empty() : HasCpu(controllers);
    if (is_it) return PathWithin(hierarchy, line.substr(second + 1));
  }
  return std::nullopt;
}

std::optional<int> QuotaOf(const std::string& folder, bool is_v2) {
  std::string quota;
  std::string period;
  if (is_v2) {
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  auto used = ParseNumber<long>(quota);  // "max" and -1: no limit
  auto of = ParseNumber<long>(period);
  if (!used || !of || *used <= 0 || *of <= 0) return std::nullopt;
  return static_cast<int>((*used + *of - 1) / *of);
}

std::optional<int> Smaller(const std::optional<int>& one, const std::optional<int>& other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

}  // namespace

std::optional<int> ReadCpuLimit(const std::string& root) {
  std::optional<int> limit;
  const std::vector<std::string> groups = LinesOf(root + "/proc/self/cgroup");
  for (const std::string& line : LinesOf(root + "/proc/self/mountinfo")) {
    auto hierarchy = ParseMount(line);
    auto group = hierarchy ? OurGroup(*hierarchy, groups) : std::nullopt;
    if (!group) continue;
    for (;; group->resize(group->rfind('/'))) {
      limit = Smaller(limit, QuotaOf(root + hierarchy->mount + *group, hierarchy->is_v2));
      if (group->empty()) break;
    }
  }
  return limit;
}

}  // namespace rankrun
