#include "agent/metrics/job_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/metrics/store_metrics.h"
#include "agent/report/last_error.h"

namespace rankrun::agent {
namespace {

using enum MetricFamily::Kind;

constexpr std::array kFailureKinds = {FailureKind::kExit,      FailureKind::kSignal,
                                      FailureKind::kException, FailureKind::kNodeLost,
                                      FailureKind::kAgentLost, FailureKind::kNotStarted,
                                      FailureKind::kHang,      FailureKind::kOther};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double UnixTime(const JobMetrics::Now& now, TimePoint time) {
  auto since_epoch = std::chrono::duration<double>(now.clock.time_since_epoch()).count();
  return since_epoch - Seconds(now.time - time);
}

MetricFamily Single(std::string_view name, MetricFamily::Kind kind, std::string_view help,
                    double value) {
  return {name, kind, help, {{.labels = {}, .value = value}}};
}

// Returns whether the program ended with an exception, by its error file or its last lines.
bool RaisedException(const WorkerRecord& worker) {
  if (worker.exit->signaled) return false;
  if (worker.exception) return true;
  return EndedWithException(FindLastError(worker.stderr_tail));
}

// Returns the kind of a cause of which only the coordinator's text is known, such as "node n1
// is lost: ...", "the agent of node n1 died" or "rank 3 on n1 (pid 7): killed by SIGKILL".
FailureKind KindOfText(std::string_view text) {
  auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (text.starts_with("the agent ")) return FailureKind::kAgentLost;
  if (text.starts_with("node ")) return FailureKind::kNodeLost;
  if (!text.starts_with("rank ")) return FailureKind::kOther;
  if (has(": could not be started")) return FailureKind::kNotStarted;
  return has(": killed by ") ? FailureKind::kSignal : FailureKind::kExit;
}

}  // namespace

std::string_view NameOf(FailureKind kind) {
  switch (kind) {
    case FailureKind::kExit:
      return "exit";
    case FailureKind::kSignal:
      return "signal";
    case FailureKind::kException:
      return "exception";
    case FailureKind::kNodeLost:
      return "node_lost";
    case FailureKind::kAgentLost:
      return "agent_lost";
    case FailureKind::kNotStarted:
      return "not_started";
    case FailureKind::kHang:
      return "hang";
    case FailureKind::kOther:
      return "other";
  }
  return "other";
}

FailureKind FailureKindOf(const AttemptRecord& record) {
  if (record.exit_code == kExitHang) return FailureKind::kHang;
  if (!record.own_cause.empty()) return KindOfText(record.own_cause);
  const WorkerRecord& cause = record.workers[record.cause];
  if (!cause.exit) return FailureKind::kNotStarted;
  if (RaisedException(cause)) return FailureKind::kException;
  return cause.exit->signaled ? FailureKind::kSignal : FailureKind::kExit;
}

void JobMetrics::Note(const events::Payload& event, std::optional<int> attempt, TimePoint now) {
  // The report of an attempt may come after the start of the next one.
  attempt_ = std::max(attempt_, attempt.value_or(attempt_));
  std::visit([&](const auto& payload) { On(payload, now); }, event);
}

void JobMetrics::Note(const WorkerStep& step) {
  auto [found, is_new] = steps_.try_emplace(step.local_rank, RankStep{step.step, times_back_});
  RankStep& known = found->second;
  if (!is_new && known.step == step.step) return;
  if (step.step < known.step) known.times_back += 1;
  known.step = step.step;
  // The rank that goes back first counts, and then the one that is ahead. The others follow and
  // may be seen later.
  times_back_ = std::max(times_back_, known.times_back);
  const bool is_behind = std::ranges::any_of(steps_, [&](const auto& other) {
    return other.first != step.local_rank && other.second.times_back == times_back_ &&
           other.second.step >= step.step;
  });
  if (known.times_back == times_back_ && !is_behind) progress_.StepDone(step.step, step.at);
}

void JobMetrics::On(const events::AttemptStarted&, TimePoint now) {
  workers_.assign(static_cast<size_t>(job_.workers), WorkerState::kWaiting);
  steps_.clear();
  times_back_ = 0;
  attempt_began_ = now;
  progress_.AttemptStarted(now);
}

void JobMetrics::On(const events::WorkerStarted& event, TimePoint) {
  workers_.at(static_cast<size_t>(event.local_rank)) = WorkerState::kRunning;
}

void JobMetrics::On(const events::WorkerEnded& event, TimePoint now) {
  const bool failed = event.worker.failed();
  workers_.at(static_cast<size_t>(event.worker.local_rank)) =
      failed ? WorkerState::kFailed : WorkerState::kSucceeded;
  if (failed) progress_.AttemptFailed(now);
}

void JobMetrics::On(const events::AgentRestarted& event, TimePoint) {
  failures_[FailureKind::kAgentLost] += 1;
  if (event.restarts) restarts_counted_ += 1;
}

void JobMetrics::On(const events::NodeLost&, TimePoint now) {
  nodes_lost_ += 1;
  progress_.AttemptFailed(now);
}

void JobMetrics::On(const events::Restart& event, TimePoint) {
  (event.is_free ? restarts_free_ : restarts_counted_) += 1;
}

void JobMetrics::On(const events::Report& event, TimePoint) {
  failures_[FailureKindOf(event.record)] += 1;
}

std::vector<MetricFamily> JobMetrics::Families(const Now& now) const {
  std::vector<MetricFamily> families;
  AddJob(families, now);
  AddFailures(families);
  AddWorkers(families, now);
  AddSteps(families, now);
  if (now.store) AddStore(families, *now.store);
  return families;
}

void JobMetrics::AddJob(std::vector<MetricFamily>& families, const Now& now) const {
  families.push_back(
      {"rankrun_info",
       kGauge,
       "The job and this node of it; always 1.",
       {{.labels = {{"version", job_.version}, {"run_id", job_.run_id}, {"node", job_.node}},
         .value = 1}}});
  families.push_back(Single("rankrun_job_start_time_seconds", kGauge,
                            "Start of the job, in seconds since 1970.", UnixTime(now, job_.began)));
  families.push_back(
      Single("rankrun_attempt", kGauge, "Number of the attempt; 0 is the first.", attempt_));
  if (attempt_began_) {
    families.push_back(Single("rankrun_attempt_start_time_seconds", kGauge,
                              "Start of the attempt, in seconds since 1970.",
                              UnixTime(now, *attempt_began_)));
  }
  if (attempt_began_) {
    families.push_back(Single("rankrun_world_size", kGauge,
                              "Number of workers on all nodes of the attempt.", now.world_size));
  }
}

void JobMetrics::AddFailures(std::vector<MetricFamily>& families) const {
  families.push_back(
      {"rankrun_restarts_total",
       kCounter,
       "Restarts of all workers; counted ones use up --max-restarts.",
       {{.labels = {{"budget", "counted"}}, .value = static_cast<double>(restarts_counted_)},
        {.labels = {{"budget", "free"}}, .value = static_cast<double>(restarts_free_)}}});
  families.push_back(
      Single("rankrun_max_restarts", kGauge, "Value of --max-restarts.", job_.max_restarts));
  MetricFamily failures{"rankrun_failures_total",
                        kCounter,
                        "Failed attempts by the kind of their first cause; the same on all nodes.",
                        {}};
  for (FailureKind kind : kFailureKinds) {
    auto count = failures_.find(kind);
    failures.samples.push_back(
        {.labels = {{"kind", std::string(NameOf(kind))}},
         .value = count == failures_.end() ? 0 : static_cast<double>(count->second)});
  }
  families.push_back(std::move(failures));
  families.push_back(Single("rankrun_nodes_lost_total", kCounter,
                            "Nodes without which the job went on.",
                            static_cast<double>(nodes_lost_)));
}

void JobMetrics::AddWorkers(std::vector<MetricFamily>& families, const Now& now) const {
  constexpr std::array kStates = {
      std::pair(WorkerState::kWaiting, "waiting"), std::pair(WorkerState::kRunning, "running"),
      std::pair(WorkerState::kSucceeded, "succeeded"), std::pair(WorkerState::kFailed, "failed")};
  MetricFamily workers{"rankrun_workers", kGauge, "Workers of this node by their state.", {}};
  for (const auto& [state, name] : kStates) {
    const auto count = std::ranges::count(workers_, state);
    workers.samples.push_back({.labels = {{"state", name}}, .value = static_cast<double>(count)});
  }
  families.push_back(std::move(workers));
  MetricFamily steps{"rankrun_step", kGauge, "The last step that a worker has noted.", {}};
  for (const auto& [local_rank, step] : steps_) {
    steps.samples.push_back({.labels = {{"rank", std::to_string(now.first_rank + local_rank)}},
                             .value = static_cast<double>(step.step)});
  }
  families.push_back(std::move(steps));
}

void JobMetrics::AddSteps(std::vector<MetricFamily>& families, const Now& now) const {
  const LostTime& lost = progress_.lost();
  MetricFamily seconds{"rankrun_lost_seconds_total",
                       kCounter,
                       "Time that the workers of this node lost, by the reason.",
                       {}};
  auto add = [&](const char* reason, Duration time) {
    seconds.samples.push_back({.labels = {{"reason", reason}}, .value = Seconds(time)});
  };
  add("downtime", lost.downtime);
  if (progress_.last_step()) {
    add("start", lost.start);
    add("unfinished_step", lost.unfinished_step);
    add("repeated_steps", lost.repeated_steps);
  }
  families.push_back(std::move(seconds));
  if (!progress_.last_step()) return;
  families.push_back(Single("rankrun_steps_total", kCounter,
                            "Steps of this node's foremost worker, with repeated ones.",
                            static_cast<double>(progress_.steps_done())));
  families.push_back(Single("rankrun_repeated_steps_total", kCounter,
                            "Steps that were lost by a failure and made again.",
                            static_cast<double>(progress_.steps_repeated())));
  const double productive = Seconds(progress_.productive());
  families.push_back(Single("rankrun_productive_seconds", kGauge,
                            "Time in which steps were made that were not repeated.", productive));
  const double elapsed = Seconds(now.time - job_.counted_from);
  families.push_back(Single("rankrun_goodput_ratio", kGauge,
                            "Share of the time since this agent began in which steps were made "
                            "that were not repeated.",
                            elapsed > 0 ? productive / elapsed : 0));
}

}  // namespace rankrun::agent
