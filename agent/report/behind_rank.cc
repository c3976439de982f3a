#include "agent/report/behind_rank.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace rankrun::agent {
namespace {

// The last calls in one group, by the index of the worker.
using Calls = std::map<size_t, const GroupCall*>;

std::map<std::string, Calls> CallsByGroup(const std::vector<WorkerRecord>& workers) {
  std::map<std::string, Calls> groups;
  for (size_t i = 0; i < workers.size(); ++i) {
    for (const GroupCall& call : workers[i].calls) {
      if (!call.is_message) groups[call.group][i] = &call;
    }
  }
  return groups;
}

bool Waits(const WorkerRecord& worker) {
  return std::ranges::find(worker.calls, false, &GroupCall::is_done) != worker.calls.end();
}

// Returns the workers that have not made the newest call in which another one waits.
std::set<size_t> WhoIsBehind(const Calls& calls) {
  int64_t newest = -1;
  for (const auto& [worker, call] : calls) {
    if (!call->is_done) newest = std::max(newest, call->sequence);
  }
  std::set<size_t> behind;
  for (const auto& [worker, call] : calls) {
    if (call->sequence < newest) behind.insert(worker);
  }
  return behind;
}

// Returns the only worker whose newest call differs from that of all others with the same number.
std::optional<size_t> WhoDiffers(const std::vector<WorkerRecord>& workers, const Calls& calls) {
  std::map<std::string, std::vector<size_t>> by_call;
  std::set<int64_t> numbers;
  for (const auto& [worker, call] : calls) {
    by_call[call->what].push_back(worker);
    numbers.insert(call->sequence);
  }
  const bool somebody_waits =
      std::ranges::any_of(calls, [](const auto& of_worker) { return !of_worker.second->is_done; });
  const bool all_are_known = calls.size() == workers.size() && calls.size() >= 3;
  if (by_call.size() != 2 || numbers.size() != 1 || !all_are_known || !somebody_waits) {
    return std::nullopt;
  }
  for (const auto& [what, callers] : by_call) {
    if (callers.size() == 1) return callers.front();
  }
  return std::nullopt;
}

// Returns the only worker that others wait for and that waits for nobody.
std::optional<size_t> WhoIsMissing(const std::vector<WorkerRecord>& workers) {
  std::set<size_t> behind;
  std::set<size_t> odd;
  for (const auto& [group, calls] : CallsByGroup(workers)) {
    const std::set<size_t> behind_here = WhoIsBehind(calls);
    behind.insert(behind_here.begin(), behind_here.end());
    if (!behind_here.empty()) continue;
    if (auto differs = WhoDiffers(workers, calls)) odd.insert(*differs);
  }
  std::erase_if(behind, [&](size_t i) { return Waits(workers[i]); });
  const std::set<size_t>& found = behind.empty() ? odd : behind;
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

}  // namespace

void NoteRankBehind(AttemptRecord& record) {
  std::vector<WorkerRecord>& workers = record.workers;
  // A worker whose calls are unknown may be the one that is missing.
  const bool all_are_known = std::ranges::none_of(
      workers, [](const WorkerRecord& worker) { return worker.calls.empty(); });
  if (!all_are_known || !record.left_out.empty()) return;
  auto missing = WhoIsMissing(workers);
  if (!missing) return;
  for (WorkerRecord& worker : workers) {
    const bool names_somebody = !worker.ending || worker.ending->lost_rank >= 0;
    if (&worker == &workers[*missing] || names_somebody || !Waits(worker)) continue;
    worker.ending->lost_rank = workers[*missing].global_rank;
  }
}

}  // namespace rankrun::agent
