#include "agent/health/wait_graph.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

namespace rankrun::agent {
namespace {

std::vector<int> Sorted(const std::set<int>& ranks) { return {ranks.begin(), ranks.end()}; }

// State of a rank in a group. A group may have two slots on a page: of collectives in memory and
// of those on devices.
struct Position {
  ActivityRecord last;
  bool is_under_way = false;
  bool is_awaited = false;  // by a thread of the program
  Duration awaited_for{};
};

Position PositionOf(const GroupActivity& group) {
  return {group.last, group.is_under_way, group.is_awaited(), group.awaited_for()};
}

struct GroupView {
  int size = 0;
  std::set<int> unknown;              // ranks whose groups are not all known
  std::map<int, Position> positions;  // by global rank
};

void Merge(Position& position, const GroupActivity& group) {
  if (position.is_under_way && !group.is_under_way) return;
  bool is_newer = group.last.number > position.last.number;
  if (!is_newer && !(group.is_under_way && !position.is_under_way)) return;
  position = PositionOf(group);
}

std::map<std::string, GroupView> GroupsOf(const std::vector<WorkerSample>& samples) {
  std::map<std::string, GroupView> groups;
  for (const WorkerSample& sample : samples) {
    for (const GroupActivity& group : sample.groups) {
      GroupView& view = groups[group.name];
      view.size = group.size;
      auto [place, is_new] = view.positions.try_emplace(sample.global_rank);
      if (is_new) {
        place->second = PositionOf(group);
      } else {
        Merge(place->second, group);
      }
    }
  }
  for (const WorkerSample& sample : samples) {
    if (sample.has_all_groups) continue;
    for (auto& [name, view] : groups) view.unknown.insert(sample.global_rank);
  }
  return groups;
}

// Returns the members of a group; nothing if they cannot be known. Two groups may share a name.
std::optional<std::set<int>> MembersOf(const GroupView& view, const std::set<int>& seen,
                                       const std::vector<WorkerSample>& samples) {
  auto size = static_cast<size_t>(view.size);
  if (size == samples.size()) {
    std::set<int> all;
    for (const WorkerSample& sample : samples) all.insert(sample.global_rank);
    return all;
  }
  if (seen.size() == size) return seen;
  return std::nullopt;
}

// Operations that match have the same kind and fingerprint.
using Camp = std::tuple<uint8_t, uint64_t>;
Camp CampOf(const ActivityRecord& record) { return {record.kind, record.fingerprint}; }

// Waits of one group.
class GroupWaits {
 public:
  GroupWaits(std::string name, const GroupView& view, const std::set<int>& halted)
      : name_(std::move(name)), view_(view), halted_(halted) {}

  // `members` empty: unknown.
  std::vector<Wait> Find(const std::optional<std::set<int>>& members) {
    for (const auto& [rank, position] : view_.positions) {
      if (position.is_under_way && position.last.number > 0) {
        under_way_[position.last.number][CampOf(position.last)].insert(rank);
      }
    }
    std::vector<Wait> waits;
    for (const auto& [number, camps] : under_way_) {
      for (const auto& [camp, ranks] : camps) {
        const std::set<int> waiters = AwaitedBy(ranks);
        if (!waiters.empty()) waits.push_back(WaitOf(number, camp, waiters, members));
      }
    }
    return waits;
  }

 private:
  // A rank that has the operation under way may do other work meanwhile.
  std::set<int> AwaitedBy(const std::set<int>& ranks) const {
    std::set<int> waiters;
    std::ranges::copy_if(ranks, std::inserter(waiters, waiters.end()),
                         [&](int rank) { return view_.positions.at(rank).is_awaited; });
    return waiters;
  }

  Wait WaitOf(uint64_t number, const Camp& camp, const std::set<int>& waiters,
              const std::optional<std::set<int>>& members) const {
    const Position& first = view_.positions.at(*waiters.begin());
    Wait wait{.what = DescribeOperation(first.last) + " of " + name_,
              .group = name_,
              .waiters = Sorted(waiters)};
    for (int rank : waiters) {
      wait.lasted = std::max(wait.lasted, view_.positions.at(rank).awaited_for);
    }
    if (!members) return wait;
    std::set<int> late = Late(number, *members);
    for (int rank : Others(number, camp)) late.insert(rank);
    wait.all_have_entered = late.empty() && under_way_.at(number).size() == 1;
    if (late.empty())
      std::ranges::set_intersection(*members, halted_, std::inserter(late, late.end()));
    for (int rank : waiters) {
      if (!halted_.contains(rank)) late.erase(rank);
    }
    wait.ranks = Sorted(late);
    return wait;
  }

  // Returns the members that have not entered this operation.
  std::set<int> Late(uint64_t number, const std::set<int>& members) const {
    std::set<int> late;
    for (int rank : members) {
      auto found = view_.positions.find(rank);
      bool is_absent = found == view_.positions.end();
      if (is_absent && view_.unknown.contains(rank)) continue;
      if (is_absent || found->second.last.number < number) late.insert(rank);
    }
    return late;
  }

  // Returns the ranks that are in another operation of the same number. The majority waits for the
  // others; without a majority, each waits for the others. A minority waits for nobody.
  std::set<int> Others(uint64_t number, const Camp& camp) const {
    std::set<int> others;
    const size_t own_size = under_way_.at(number).at(camp).size();
    size_t largest = 0;
    for (const auto& [other, ranks] : under_way_.at(number)) {
      if (other == camp) continue;
      others.insert(ranks.begin(), ranks.end());
      largest = std::max(largest, ranks.size());
    }
    return own_size >= largest ? others : std::set<int>();
  }

  const std::string name_;
  const GroupView& view_;
  const std::set<int>& halted_;
  // Ranks in an operation, by its number.
  std::map<uint64_t, std::map<Camp, std::set<int>>> under_way_;
};

void AddMessageWaits(const std::vector<WorkerSample>& samples, std::vector<Wait>& waits) {
  for (const WorkerSample& sample : samples) {
    if (sample.awaited.empty() || IsBreakpointWait(sample.awaited)) continue;
    Wait wait{.kind = WaitKind::kMessage,
              .what = sample.awaited,
              .waiters = {sample.global_rank},
              .lasted = sample.awaited_for};
    if (sample.awaited_rank >= 0) wait.ranks = {sample.awaited_rank};
    waits.push_back(std::move(wait));
  }
}

// Any rank that does not wait for the same key may be the one that is to set it.
void AddStoreWaits(const std::vector<WorkerSample>& samples, std::vector<Wait>& waits) {
  std::map<std::string, Wait> by_key;
  for (const WorkerSample& sample : samples) {
    if (!sample.store_wait) continue;
    Wait& wait = by_key[sample.store_wait->key];
    wait.kind = WaitKind::kStoreKey;
    wait.what = "key " + sample.store_wait->key + " of the store";
    wait.waiters.push_back(sample.global_rank);
    wait.lasted = std::max(wait.lasted, sample.store_wait->lasted);
  }
  for (auto& [key, wait] : by_key) {
    for (const WorkerSample& sample : samples) {
      bool waits_too = std::ranges::binary_search(wait.waiters, sample.global_rank);
      if (!waits_too) wait.ranks.push_back(sample.global_rank);
    }
    waits.push_back(std::move(wait));
  }
}

// Removes the ranks for which no other rank of the set waits, until all are waited for.
void KeepCycles(const std::vector<Wait>& waits, std::set<int>& ranks) {
  for (;;) {
    std::set<int> awaited;
    for (const Wait& wait : waits) {
      bool counts =
          std::ranges::any_of(wait.waiters, [&](int rank) { return ranks.contains(rank); });
      if (counts) awaited.insert(wait.ranks.begin(), wait.ranks.end());
    }
    if (std::erase_if(ranks, [&](int rank) { return !awaited.contains(rank); }) == 0) return;
  }
}

}  // namespace

void NoteMembers(const std::vector<WorkerSample>& samples, SeenMembers& seen) {
  std::set<std::string> present;
  for (const WorkerSample& sample : samples) {
    for (const GroupActivity& group : sample.groups) present.insert(group.name);
  }
  std::erase_if(seen, [&](const auto& entry) { return !present.contains(entry.first); });
  for (const WorkerSample& sample : samples) {
    for (const GroupActivity& group : sample.groups) seen[group.name].insert(sample.global_rank);
  }
}

std::vector<Wait> FindWaits(const std::vector<WorkerSample>& samples, const SeenMembers& seen,
                            const std::set<int>& halted) {
  std::vector<Wait> waits;
  for (const auto& [name, view] : GroupsOf(samples)) {
    auto known = seen.find(name);
    auto members = MembersOf(view, known == seen.end() ? std::set<int>() : known->second, samples);
    std::ranges::move(GroupWaits(name, view, halted).Find(members), std::back_inserter(waits));
  }
  AddMessageWaits(samples, waits);
  AddStoreWaits(samples, waits);
  // A page may have any number, because its program can write over it.
  std::set<int> known;
  for (const WorkerSample& sample : samples) known.insert(sample.global_rank);
  for (Wait& wait : waits) {
    std::erase_if(wait.ranks, [&](int rank) { return !known.contains(rank); });
  }
  return waits;
}

Blame FindBlame(const std::vector<Wait>& waits, const std::set<int>& halted) {
  std::set<int> waiting;  // for somebody known
  Blame blame;
  for (const Wait& wait : waits) {
    if (wait.ranks.empty()) continue;
    waiting.insert(wait.waiters.begin(), wait.waiters.end());
    blame.roots.insert(wait.ranks.begin(), wait.ranks.end());
  }
  for (int rank : halted) waiting.erase(rank);
  std::erase_if(blame.roots, [&](int rank) { return waiting.contains(rank); });
  // A rank from which no root can be reached is in a cycle, or waits for one.
  std::set<int> leads_to_root = blame.roots;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const Wait& wait : waits) {
      auto leads = [&](int rank) { return leads_to_root.contains(rank); };
      if (std::ranges::none_of(wait.ranks, leads)) continue;
      for (int rank : wait.waiters) has_changed |= leads_to_root.insert(rank).second;
    }
  }
  for (int rank : waiting) {
    if (!leads_to_root.contains(rank)) blame.deadlocked.insert(rank);
  }
  KeepCycles(waits, blame.deadlocked);
  return blame;
}

std::set<int> MostAwaited(const std::vector<Wait>& waits, const std::set<int>& deadlocked) {
  auto is_locked = [&](int rank) { return deadlocked.contains(rank); };
  std::map<int, size_t> waiters;  // by awaited rank, in one operation
  size_t most = 0;
  for (const Wait& wait : waits) {
    if (std::ranges::none_of(wait.waiters, is_locked)) continue;
    for (int rank : wait.ranks) {
      if (!is_locked(rank)) continue;
      waiters[rank] = std::max(waiters[rank], wait.waiters.size());
      most = std::max(most, waiters[rank]);
    }
  }
  std::set<int> found;
  for (const auto& [rank, count] : waiters) {
    if (count == most) found.insert(rank);
  }
  return found;
}

}  // namespace rankrun::agent
