#include "comm/world/group_members.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace rankrun::comm {
namespace {

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

}  // namespace

std::vector<int> AllRanks(int world_size) {
  std::vector<int> ranks(static_cast<size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Result<std::vector<int>> MembersOf(const GroupOptions& options, int world_size) {
  std::vector<int> ranks = options.ranks.empty() ? AllRanks(world_size) : options.ranks;
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0 || sorted.back() >= world_size) {
    int wrong = sorted.front() < 0 ? sorted.front() : sorted.back();
    return Invalid("rank " + std::to_string(wrong) + " is not in the world: want 0.." +
                   std::to_string(world_size - 1));
  }
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return Invalid("rank " + std::to_string(*twice) + " is given twice");
  return options.sort_ranks ? sorted : ranks;
}

std::string Joined(const std::vector<int>& ranks) {
  std::string text;
  for (int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::string NameOfGroup(const std::string& seed, int before) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (char c : seed) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char name[48];
  std::snprintf(name, sizeof name, "group_%016llx_%d", static_cast<unsigned long long>(hash),
                before);
  return name;
}

}  // namespace rankrun::comm
