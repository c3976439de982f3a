#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/job/worker_step.h"
#include "agent/metrics/exposition.h"
#include "agent/metrics/progress.h"
#include "agent/report/event.h"
#include "base/clock.h"
#include "store/server/server_stats.h"

namespace rankrun::agent {

// Kind of the cause of a failed attempt.
enum class FailureKind {
  kExit,
  kSignal,
  kException,
  kNodeLost,
  kAgentLost,
  kNotStarted,
  kHang,
  kOther,  // rankrun itself ended the attempt
};

// Returns "node_lost".
std::string_view NameOf(FailureKind kind);

// Returns the kind of the cause of a failed attempt. Pure.
FailureKind FailureKindOf(const AttemptRecord& record);

// Metrics of a job on one node, collected from its events. Knows no clock.
class JobMetrics {
 public:
  // Values that do not change.
  struct Job {
    std::string version;
    std::string run_id;
    std::string node;
    int workers;       // on this node
    int max_restarts;  // budget
    TimePoint began;
    TimePoint counted_from;  // when this agent began to count: later, if it replaced another
  };
  // Values of the present.
  struct Now {
    TimePoint time;
    std::chrono::system_clock::time_point clock;
    int first_rank = 0;
    int world_size = 0;
    std::optional<store::ServerStats> store = {};  // if this node hosts the store
  };

  explicit JobMetrics(Job job) : job_(std::move(job)), progress_(job_.counted_from) {}

  void Note(const events::Payload& event, std::optional<int> attempt, TimePoint now);
  // Takes the last step of a worker; it may be the same as before.
  void Note(const WorkerStep& step);

  std::vector<MetricFamily> Families(const Now& now) const;

 private:
  enum class WorkerState { kWaiting, kRunning, kSucceeded, kFailed };
  struct RankStep {
    int64_t step;
    int times_back;  // it went back to an earlier step so often in this attempt
  };

  void On(const events::AttemptStarted&, TimePoint now);
  void On(const events::WorkerStarted& event, TimePoint now);
  void On(const events::WorkerEnded& event, TimePoint now);
  void On(const events::StopBegun&, TimePoint now) { progress_.AttemptFailed(now); }
  void On(const events::AgentRestarted& event, TimePoint now);
  void On(const events::NodeLost&, TimePoint now);
  void On(const events::Restart& event, TimePoint now);
  void On(const events::Report& event, TimePoint now);
  void On(const auto&, TimePoint) {}

  void AddJob(std::vector<MetricFamily>& families, const Now& now) const;
  void AddFailures(std::vector<MetricFamily>& families) const;
  void AddWorkers(std::vector<MetricFamily>& families, const Now& now) const;
  void AddSteps(std::vector<MetricFamily>& families, const Now& now) const;

  const Job job_;
  Progress progress_;
  int attempt_ = 0;
  std::optional<TimePoint> attempt_began_;
  std::vector<WorkerState> workers_;  // by local rank, of this attempt
  std::map<int, RankStep> steps_;     // the last of each local rank
  int times_back_ = 0;                // the most of all ranks
  uint64_t restarts_counted_ = 0;
  uint64_t restarts_free_ = 0;
  uint64_t nodes_lost_ = 0;
  std::map<FailureKind, uint64_t> failures_;
};

}  // namespace rankrun::agent
