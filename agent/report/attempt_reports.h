#pragma once

#include <functional>
#include <string>

#include "agent/output/job_output.h"
#include "agent/report/attempt_record.h"
#include "agent/report/event_log.h"
#include "agent/report/evidence.h"

namespace rankrun::agent {

// Reports on failed attempts: completes each record with evidence, then shows
// the report to the user and writes it as an event.
// Thread: loop.
class AttemptReports {
 public:
  // Formats a report.
  using Formatter = std::function<std::string(const AttemptRecord&)>;
  struct Callbacks {
    // Takes a complete record; empty: Show is called for it.
    std::function<void(AttemptRecord)> on_complete = {};
    std::function<void()> on_shown;
    // Takes each complete record before the two above.
    std::function<void(const AttemptRecord&)> on_judged = {};
  };

  AttemptReports(Loop& loop, JobOutput& output, Formatter formatter, Callbacks callbacks);
  AttemptReports(const AttemptReports&) = delete;
  AttemptReports& operator=(const AttemptReports&) = delete;

  // Completes the record, then passes it to on_complete or Show.
  void Add(EventLog& events, AttemptRecord record);
  void Show(EventLog& events, const AttemptRecord& record);

  // Returns whether no record is being completed.
  bool idle() const { return open_ == 0; }

 private:
  JobOutput& output_;
  Formatter formatter_;
  Callbacks callbacks_;
  Evidence evidence_;
  int open_ = 0;
};

}  // namespace rankrun::agent
