#include "agent/supervisor/job_observers.h"

#include <utility>

#include "base/log.h"

namespace rankrun::agent {

Result<std::unique_ptr<JobObservers>> JobObservers::Open(Loop& loop, const JobSpec& spec,
                                                         const JobRecord& job,
                                                         Metrics::Sources sources,
                                                         KeptReport::Callbacks callbacks) {
  std::unique_ptr<JobObservers> observers(new JobObservers);
  if (spec.metrics) {
    auto metrics = Metrics::Open(loop, spec, job, std::move(sources), callbacks.show);
    if (metrics) {
      observers->metrics_ = std::move(*metrics);
    } else if (job.incarnation == 0) {
      return std::move(metrics).error();
    } else {
      callbacks.show("rankrun: " + metrics.error().message +
                     "; the job continues without metrics\n");
    }
  }
  if (spec.report_folder.empty()) {
    LogDebug("no report is kept, because there is no folder for it");
    return observers;
  }
  observers->report_ = std::make_unique<KeptReport>(loop, spec, job, std::move(callbacks));
  return observers;
}

void JobObservers::Note(const std::shared_ptr<const events::Event>& event) {
  if (metrics_) metrics_->Note(*event);
  if (report_) report_->Note(event);
}

void JobObservers::Note(const WorkerStep& step) {
  if (metrics_) metrics_->Note(step);
}

}  // namespace rankrun::agent
