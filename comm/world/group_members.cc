#include "comm/world/group_members.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace rankrun::comm {
namespace {

Error Invalid(const std::string& message) { return Error{ErrorCode::kInvalid, message}; }

std::vector<int> Sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Fails if a rank is not in the group or is there twice.
Result<void> CheckRanks(const std::vector<int>& sorted, int world_size, const std::string& group) {
  if (sorted.front() < 0 || sorted.back() >= world_size) {
    int wrong = sorted.front() < 0 ? sorted.front() : sorted.back();
    return Invalid("rank " + std::to_string(wrong) + " is not in " + group + ": want 0.." +
                   std::to_string(world_size - 1));
  }
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return Invalid("rank " + std::to_string(*twice) + " is given twice");
  return {};
}

bool Has(const std::vector<int>& ranks, int rank) { return IndexOf(ranks, rank) >= 0; }

}  // namespace

std::vector<int> AllRanks(int world_size) {
  std::vector<int> ranks(static_cast<size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Result<std::vector<int>> MembersOf(const GroupOptions& options, int world_size) {
  std::vector<int> ranks = options.ranks.empty() ? AllRanks(world_size) : options.ranks;
  std::vector<int> sorted = Sorted(ranks);
  if (auto ok = CheckRanks(sorted, world_size, "the world"); !ok) return ok.error();
  return options.sort_ranks ? sorted : ranks;
}

Result<Subgroups> SplitOf(const std::vector<std::vector<int>>& splits, int rank, int world_size) {
  if (splits.empty()) return Invalid("there is no list of ranks: want one per group");
  Subgroups groups{.callers = AllRanks(world_size), .wishes = "groups of ranks "};
  std::vector<int> all;
  for (const std::vector<int>& split : splits) {
    if (split.empty()) return Invalid("a list of ranks is empty: want at least one rank per group");
    if (Has(split, rank)) groups.members = split;
    groups.wishes += (all.empty() ? "" : " | ") + Joined(split);
    all.insert(all.end(), split.begin(), split.end());
  }
  if (auto ok = CheckRanks(Sorted(all), world_size, "the group"); !ok) return ok.error();
  return groups;
}

Result<Subgroups> WithoutRanks(const std::vector<int>& excluded, int rank, int world_size) {
  if (excluded.empty()) return Invalid("no rank is excluded: want at least one");
  const std::vector<int> sorted = Sorted(excluded);
  if (auto ok = CheckRanks(sorted, world_size, "the group"); !ok) return ok.error();
  if (Has(sorted, rank)) {
    return Invalid("it excludes this rank, " + std::to_string(rank) +
                   ": want a call on the others");
  }
  Subgroups groups{.wishes = "to exclude ranks " + Joined(sorted)};
  for (int other = 0; other < world_size; ++other) {
    if (!Has(sorted, other)) groups.callers.push_back(other);
  }
  groups.members = groups.callers;
  return groups;
}

int IndexOf(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::string OptionsInWords(const BackendWish& backend, std::chrono::milliseconds timeout,
                           const std::string& description) {
  return InWords(backend) + ", timeout " + std::to_string(timeout.count()) + " ms, description \"" +
         description + "\"";
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
