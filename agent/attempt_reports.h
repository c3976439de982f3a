#pragma once

#include <functional>
#include <string>

#include "agent/attempt_record.h"
#include "agent/event_log.h"
#include "agent/evidence.h"
#include "agent/job_output.h"
#include "agent/worker_group.h"

namespace rankrun::agent {

// Reports on failed attempts: completes each record with evidence, then shows
// it and tells it to programs.
// Thread: loop.
class AttemptReports {
 public:
  // The text of a report.
  using Formatter = std::function<std::string(const AttemptRecord&)>;
  struct Callbacks {
    // What becomes of a complete record; nothing: it is shown here.
    std::function<void(AttemptRecord)> on_complete = {};
    std::function<void()> on_shown;
  };

  AttemptReports(Loop& loop, JobOutput& output, Formatter formatter, Callbacks callbacks);
  AttemptReports(const AttemptReports&) = delete;
  AttemptReports& operator=(const AttemptReports&) = delete;

  void Add(EventLog& events, AttemptRecord record);
  void Show(EventLog& events, const AttemptRecord& record);

  // None is being completed.
  bool idle() const { return open_ == 0; }

 private:
  JobOutput& output_;
  Formatter formatter_;
  Callbacks callbacks_;
  Evidence evidence_;
  int open_ = 0;
};

// What follows the attempt, as the group's next state has it. Pure.
void NoteWhatFollows(AttemptRecord& record, const GroupState& next);

}  // namespace rankrun::agent
