#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/health/worker_sample.h"

// Which workers wait for which others, from samples of all workers of a job. Pure.
namespace rankrun::agent {

enum class WaitKind : uint8_t { kCollective, kMessage, kStoreKey };

// Workers that wait for the same thing.
struct Wait {
  WaitKind kind = WaitKind::kCollective;
  std::string what{};          // "AllReduce #12 (16 x float32, sum) of world", "key K of the store"
  std::string group{};         // name; only of a collective
  std::vector<int> waiters{};  // global ranks, ascending
  // Global ranks for which they wait, ascending. Empty: unknown, or all have entered the
  // collective.
  std::vector<int> ranks{};
  bool all_have_entered = false;  // only of a collective
  Duration lasted{};              // of the waiter that has waited longest
};

// Ranks that each group, by its name, has had since the attempt began. Groups that no rank has any
// more are forgotten.
using SeenMembers = std::map<std::string, std::set<int>>;
void NoteMembers(const std::vector<WorkerSample>& samples, SeenMembers& seen);

// Returns all waits. `halted` are ranks that do not continue, whatever others do: of a collective
// that all ranks have entered, they are the ones that the others wait for. `samples` are sorted by
// global rank.
std::vector<Wait> FindWaits(const std::vector<WorkerSample>& samples, const SeenMembers& seen,
                            const std::set<int>& halted);

// Ranks for which others wait, and that wait for nobody known themselves.
struct Blame {
  std::set<int> roots{};
  std::set<int> deadlocked{};  // ranks that wait for each other
};

// Ignores the waits of `halted` ranks.
Blame FindBlame(const std::vector<Wait>& waits, const std::set<int>& halted);

// Returns the ranks of a dead-lock for which most ranks wait in one operation: they do something
// else than the others.
std::set<int> MostAwaited(const std::vector<Wait>& waits, const std::set<int>& deadlocked);

}  // namespace rankrun::agent
