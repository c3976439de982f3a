#include "agent/supervisor/rank_stacks.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

// With the program's grace, it leaves time to encode the answer and to send it.
constexpr std::chrono::milliseconds kBudget{3'500};

constexpr const char* kBusy =
    "another rankctl is taking stacks on this node; ask again when it has ended";

// Returns why a worker has no stack; empty: it has one.
std::string WhyNoStack(const WorkerRecord& worker) {
  if (worker.exit || worker.start_error) return "it has ended: " + HowItEnded(worker);
  return worker.pid == 0 ? "it has not started yet" : "";
}

bool IsTaken(const StackGroup& rank) { return rank.stacks.note.empty(); }

}  // namespace

void RankStacksTaker::Answer(std::vector<StackGroup> ranks, size_t room, Reply reply) {
  std::vector<pid_t> pids;
  for (StackGroup& rank : ranks) {
    if (IsTaken(rank) && is_busy_) rank.stacks.note = kBusy;
    if (IsTaken(rank)) pids.push_back(rank.stacks.pid);
  }
  if (pids.empty()) return Encode(std::move(ranks), room, std::move(reply));
  is_busy_ = true;
  auto done = [this, ranks = std::move(ranks), room,
               reply = std::move(reply)](std::vector<ProcessStacks> all) mutable {
    is_busy_ = false;
    for (StackGroup& rank : ranks) {
      auto found = std::ranges::find(all, rank.stacks.pid, &ProcessStacks::pid);
      if (IsTaken(rank) && found != all.end()) rank.stacks = std::move(*found);
    }
    Encode(std::move(ranks), room, std::move(reply));
  };
  taker_.Take(pids, kBudget, std::move(done));
}

// The stacks of many threads are megabytes.
void RankStacksTaker::Encode(std::vector<StackGroup> ranks, size_t room, Reply reply) {
  auto groups = std::make_shared<std::vector<StackGroup>>(std::move(ranks));
  auto json = std::make_shared<std::string>();
  RunInPool(
      loop_, [groups, json, room] { *json = EncodeStackGroups(std::move(*groups), room); },
      [json, reply = std::move(reply)] { reply(std::move(*json)); });
}

std::vector<StackGroup> RanksOf(const std::vector<const WorkerRecord*>& workers, int first_rank,
                                const std::vector<int>& ranks) {
  std::vector<StackGroup> found;
  for (int rank : std::set<int>(ranks.begin(), ranks.end())) {
    const int64_t local_rank = int64_t{rank} - first_rank;
    if (local_rank < 0 || local_rank >= static_cast<int64_t>(workers.size())) continue;
    const WorkerRecord& worker = *workers[static_cast<size_t>(local_rank)];
    found.push_back({.ranks = {{.rank = rank, .pid = worker.pid}},
                     .stacks = {.pid = worker.pid, .note = WhyNoStack(worker)}});
  }
  return found;
}

}  // namespace rankrun::agent
