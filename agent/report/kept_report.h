#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/job/job_record.h"
#include "agent/job/job_spec.h"
#include "agent/report/event.h"
#include "agent/report/report_document.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Keeps the report on a job with a failed attempt in a file, for `rankctl report`. Writes the
// file in libuv's pool soon after a report, which delays no restart, and at the end. Several
// nodes may share the folder: only the first one keeps it.
// Thread: loop.  Lifetime: may end at any time.
class KeptReport {
 public:
  struct Callbacks {
    std::function<bool()> is_keeper;                    // this node has rank 0 in the attempt
    std::function<void(const std::string& line)> show;  // a warning, at most once
    std::function<void()> on_progress;                  // when idle() may have changed
  };

  // `loop` and `spec` outlive this object.
  KeptReport(Loop& loop, const JobSpec& spec, const JobRecord& job, Callbacks callbacks);
  KeptReport(const KeptReport&) = delete;
  KeptReport& operator=(const KeptReport&) = delete;
  ~KeptReport();

  void Note(const std::shared_ptr<const events::Event>& event);

  // Returns whether all is written, or a second has passed since the end of the job.
  bool idle() const { return !is_writing_ || is_late_; }

 private:
  struct Task;

  void Save();
  void OnSaved(Task& task);
  void OnFailure(const Error& error);

  Loop& loop_;
  const JobSpec& spec_;
  const std::string name_;
  Callbacks callbacks_;
  ReportDocument document_;
  std::shared_ptr<KeptReport*> self_;  // shared with the task in the pool; null once this is gone
  bool has_attempt_ = false;           // false: a spare, which has no rank
  bool has_earlier_;                   // an earlier agent may have kept a report on this job
  bool is_due_ = false;                // the timer of the next write runs
  bool is_writing_ = false;
  bool is_outdated_ = false;  // events came while the file was written
  bool has_warned_ = false;
  bool is_late_ = false;
  Timer save_timer_;
  Timer end_timer_;
};

}  // namespace rankrun::agent
