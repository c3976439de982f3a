#include "agent/metrics/metrics.h"

#include <chrono>
#include <utility>

#include "base/host_name.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLookPeriod{1};

std::string NodeName(const JobSpec& spec) {
  return spec.nodes ? spec.nodes->node_name : HostName();
}

}  // namespace

Metrics::Metrics(Loop& loop, JobMetrics::Job job, Sources sources)
    : job_(std::move(job)), sources_(std::move(sources)), next_look_(loop, [this] {
        ReadSteps();
        next_look_.Start(kLookPeriod);
      }) {}

Result<std::unique_ptr<Metrics>> Metrics::Open(
    Loop& loop, const JobSpec& spec, const JobRecord& record, Sources sources,
    const std::function<void(const std::string&)>& show) {
  auto socket = MetricsSocket::Listen(*spec.metrics);
  if (!socket) return std::move(socket).error();
  const bool is_chosen = spec.metrics->path.empty() && spec.metrics->port == 0;
  if (is_chosen) show("rankrun: metrics: " + socket->shown() + "\n");
  JobMetrics::Job job{
      .version = spec.version,
      .run_id = spec.run_id,
      .node = NodeName(spec),
      .workers = spec.workers,
      .max_restarts = spec.max_restarts,
      .began = record.job_began,
      .counted_from = record.incarnation == 0 ? record.job_began : steady_clock::now()};
  std::unique_ptr<Metrics> metrics(new Metrics(loop, std::move(job), std::move(sources)));
  auto server = MetricsServer::Open(loop, std::move(*socket),
                                    [raw = metrics.get()] { return raw->Render(); });
  if (!server) return std::move(server).error();
  metrics->server_ = std::move(*server);
  metrics->next_look_.Start(kLookPeriod);
  return metrics;
}

void Metrics::Note(const events::Event& event) {
  if (std::holds_alternative<events::AttemptStarted>(event.payload)) has_end_ = false;
  // A failure ends the count of steps, so the last ones are read before it.
  const bool is_end = std::holds_alternative<events::WorkerEnded>(event.payload) ||
                      std::holds_alternative<events::StopBegun>(event.payload);
  if (is_end && !std::exchange(has_end_, true)) ReadSteps();
  job_.Note(event.payload, event.attempt, std::chrono::steady_clock::now());
}

void Metrics::ReadSteps() {
  for (const WorkerStep& step : sources_.steps()) job_.Note(step);
}

std::string Metrics::Render() {
  ReadSteps();
  const NodePlace& place = sources_.place();
  return FormatExposition(job_.Families({.time = std::chrono::steady_clock::now(),
                                         .clock = std::chrono::system_clock::now(),
                                         .first_rank = place.first_rank,
                                         .world_size = place.world_size,
                                         .store = sources_.store()}));
}

}  // namespace rankrun::agent
