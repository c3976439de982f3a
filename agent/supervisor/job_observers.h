#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/job/job_record.h"
#include "agent/job/job_spec.h"
#include "agent/metrics/metrics.h"
#include "agent/report/event.h"
#include "agent/report/kept_report.h"

namespace rankrun::agent {

// The parts that only look at the events of a job: its metrics and the report that is kept.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class JobObservers {
 public:
  // `loop` and `spec` outlive this object. Blocks on the resolver.
  // Errors: those of Metrics::Open, for the first agent of the job. A later one warns instead,
  // because the job runs already.
  static Result<std::unique_ptr<JobObservers>> Open(Loop& loop, const JobSpec& spec,
                                                    const JobRecord& job, Metrics::Sources sources,
                                                    KeptReport::Callbacks callbacks);

  void Note(const std::shared_ptr<const events::Event>& event);
  void Note(const WorkerStep& step);
  // Returns whether nothing waits to be written.
  bool idle() const { return !report_ || report_->idle(); }

 private:
  JobObservers() = default;

  std::unique_ptr<Metrics> metrics_;    // null: none are served
  std::unique_ptr<KeptReport> report_;  // null: none is kept
};

}  // namespace rankrun::agent
