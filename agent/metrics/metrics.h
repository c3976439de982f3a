#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/job/job_record.h"
#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"
#include "agent/metrics/job_metrics.h"
#include "agent/metrics/metrics_server.h"
#include "agent/report/event.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// The metrics of a job on this node, and their server.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Metrics {
 public:
  // Sources of what the events do not tell.
  struct Sources {
    std::function<std::vector<WorkerStep>()> steps;
    std::function<const NodePlace&()> place;
    std::function<std::optional<store::ServerStats>()> store;
  };

  // `loop` outlives this object; `spec` has an address for metrics. `show` gets a line with
  // the address if the kernel has chosen its port. Blocks on the resolver.
  // Errors: kInvalid for the address, kSystem.
  static Result<std::unique_ptr<Metrics>> Open(Loop& loop, const JobSpec& spec,
                                               const JobRecord& record, Sources sources,
                                               const std::function<void(const std::string&)>& show);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void Note(const events::Event& event);
  void Note(const WorkerStep& step) { job_.Note(step); }

 private:
  Metrics(Loop& loop, JobMetrics::Job job, Sources sources);
  void ReadSteps();
  std::string Render();

  JobMetrics job_;
  Sources sources_;
  Timer next_look_;       // at the steps of the workers
  bool has_end_ = false;  // a worker of the attempt has ended, or is to end
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace rankrun::agent
