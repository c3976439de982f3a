#include "agent/supervisor/quiet_notice.h"

#include <map>
#include <string>
#include <utility>

#include "agent/health/condition.h"
#include "agent/health/process_facts.h"
#include "agent/health/quiet_watch.h"
#include "agent/health/stack_waits.h"
#include "agent/health/worker_peers.h"
#include "agent/output/job_output.h"
#include "base/format.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::milliseconds kBudget{1'500};
constexpr size_t kMaxWorkers = 16;  // whose stacks are read

// The workers of one node show nothing about collectives of the job, only about dials.
void KeepDials(std::vector<RankDigest>& digests) {
  std::erase_if(digests, [](const RankDigest& rank) { return rank.digest.dial == Dial::kNone; });
}

}  // namespace

QuietNotice::QuietNotice(Loop& loop, Spawner& spawner, JobOutput& output)
    : loop_(loop),
      output_(output),
      taker_(loop, spawner),
      self_(std::make_shared<QuietNotice*>(this)) {}

QuietNotice::~QuietNotice() { *self_ = nullptr; }

void QuietNotice::Cancel() {
  number_ += 1;
  known_.clear();
  taker_.Cancel();
}

std::optional<QuietNotice::Doing> QuietNotice::DoingOf(const WorkerSample& worker,
                                                       TimePoint now) const {
  constexpr Duration kStart = std::chrono::milliseconds(50);
  const auto found = known_.find(worker.pid);
  if (found == known_.end()) return std::nullopt;
  const Duration used = worker.cpu_time - found->second.cpu_time;
  if (used > kStart + (now - found->second.read) / kQuietShare) return std::nullopt;
  return Doing{found->second.doing, now - found->second.since};
}

void QuietNotice::Show(std::vector<WorkerSample> workers, Duration quiet, bool sees_all) {
  if (is_busy_) return;
  std::erase_if(workers, [](const auto& worker) { return worker.pid == 0 || worker.has_ended; });
  std::vector<pid_t> pids;
  for (const WorkerSample& worker : workers) {
    if (pids.size() < kMaxWorkers) pids.push_back(worker.pid);
  }
  sees_all &= pids.size() == workers.size();
  is_busy_ = true;
  auto evidence = std::make_shared<Evidence>(Evidence{std::move(workers), quiet, sees_all});
  taker_.Take(pids, kBudget, [this, evidence, number = ++number_](std::vector<ProcessStacks> all) {
    std::map<pid_t, ProcessStacks> stacks;
    for (ProcessStacks& one : all) stacks[one.pid] = std::move(one);
    evidence->digests = DigestsOf(evidence->workers, stacks);
    is_busy_ = false;
    if (number == number_) ReadFacts(evidence);
  });
}

// The pool and the loop share the evidence.
void QuietNotice::ReadFacts(const std::shared_ptr<Evidence>& evidence) {
  RunInPool(
      loop_,
      [evidence, files = files_] {
        std::vector<WorkerSample*> workers;
        for (WorkerSample& worker : evidence->workers) {
          worker.process = ReadProcessFacts(worker.pid, *files);
          workers.push_back(&worker);
        }
        AddPeers(workers);
      },
      [evidence, owner = self_, number = number_] {
        if (*owner != nullptr && number == (*owner)->number_) (*owner)->Finish(*evidence);
      });
}

void QuietNotice::Finish(const Evidence& evidence) {
  const TimePoint now = std::chrono::steady_clock::now();
  known_.clear();
  std::map<int, std::string> doing;
  for (const WorkerSample& worker : evidence.workers) {
    const Condition condition = ConditionOf(worker, {});
    doing[worker.global_rank] = ConditionInWords(worker, condition).substr(3);
  }
  std::vector<RankDigest> digests = evidence.digests;
  for (size_t i = 0; i < digests.size(); ++i) {
    const StackDigest& digest = digests[i].digest;
    const WorkerSample& worker = evidence.workers[i];
    const std::string what =
        digest.dial == Dial::kNone ? "in " + digest.call : "dialling " + digest.address;
    if (!digest.call.empty()) {
      known_[worker.pid] = {what, now - evidence.quiet, worker.cpu_time, now};
    }
  }
  if (!evidence.sees_all) KeepDials(digests);
  for (const std::string& wait : VisibleWaits(evidence.workers, digests, doing)) {
    output_.Say("rankrun: " + wait + "; for " + FormatSeconds(evidence.quiet) + "\n");
  }
}

}  // namespace rankrun::agent
