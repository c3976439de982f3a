#include "agent/supervisor/late_stacks.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxWorkers = 16;

}  // namespace

std::optional<Duration> LeadOfStacks(Duration timeout) {
  constexpr std::chrono::milliseconds kMaxLead{2'500};
  constexpr std::chrono::milliseconds kMinLead{250};  // more than the program needs to start
  const Duration lead = std::min<Duration>(kMaxLead, timeout / 2);
  if (lead < kMinLead) return std::nullopt;
  return lead;
}

LateStacks::LateStacks(Loop& loop, Spawner& spawner)
    : taker_(loop, spawner), timer_(loop, [this] { TakeLate(); }) {}

void LateStacks::Arm(const GroupState& state, TimePoint now,
                     std::function<std::vector<pid_t>()> workers) {
  timer_.Stop();
  if (state.phase != Phase::kStopping || state.kill_now) return;
  const auto lead = LeadOfStacks(state.deadline - state.stop_began);
  if (!lead || state.deadline - now < *lead) return;
  workers_ = std::move(workers);
  budget_ = *lead;
  timer_.Start(state.deadline - *lead - now);
}

void LateStacks::TakeLate() {
  // The program is killed with time to spare before the workers are.
  constexpr int kShareOfBudget = 4;
  std::vector<pid_t> workers = workers_();
  std::erase_if(workers, [this](pid_t pid) { return stacks_.contains(pid); });
  if (workers.empty()) return;
  late_.insert(workers.begin(), workers.end());
  Take(std::move(workers), budget_ - budget_ / kShareOfBudget, [] {});
}

void LateStacks::Take(std::vector<pid_t> workers, Duration budget, std::function<void()> done) {
  workers.resize(std::min(workers.size(), kMaxWorkers));
  taker_.Take(workers, budget, [this, done = std::move(done)](std::vector<ProcessStacks> all) {
    for (ProcessStacks& stacks : all) {
      if (!stacks.note.empty()) {
        LogInfo("stack of pid " + std::to_string(stacks.pid) + ": " + stacks.note);
      }
      const pid_t pid = stacks.pid;
      stacks_[pid] = std::move(stacks);
    }
    done();
  });
}

void LateStacks::Cancel() {
  timer_.Stop();
  taker_.Cancel();
}

void LateStacks::AddTo(AttemptRecord& record) {
  for (WorkerRecord& worker : record.workers) {
    auto found = stacks_.find(worker.pid);
    if (found == stacks_.end()) continue;
    const bool was_killed = worker.exit == ProcessExit{.signaled = true, .value = SIGKILL};
    if (was_killed || !late_.contains(worker.pid)) worker.stacks = ForRecord(found->second);
  }
  stacks_.clear();
  late_.clear();
}

}  // namespace rankrun::agent
