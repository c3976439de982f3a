#include "agent/report/attempt_reports.h"

#include <utility>

#include "agent/job/exit_codes.h"
#include "agent/report/verdict.h"

namespace rankrun::agent {

AttemptReports::AttemptReports(Loop& loop, JobOutput& output, Formatter formatter,
                               Callbacks callbacks)
    : output_(output),
      formatter_(std::move(formatter)),
      callbacks_(std::move(callbacks)),
      evidence_(loop) {}

void AttemptReports::Add(EventLog& events, AttemptRecord record) {
  open_ += 1;
  evidence_.Complete(output_.logs(), std::move(record), [this, &events](AttemptRecord complete) {
    open_ -= 1;
    Judge(complete, !callbacks_.on_complete);
    if (callbacks_.on_judged) callbacks_.on_judged(complete);
    if (callbacks_.on_complete) {
      callbacks_.on_complete(std::move(complete));
      callbacks_.on_shown();
    } else {
      Show(events, complete);
    }
  });
}

void AttemptReports::Show(EventLog& events, const AttemptRecord& record) {
  std::string text = formatter_(record);
  events.Report(record, text);
  output_.Say(text);
  callbacks_.on_shown();
}

void RecordNextStep(AttemptRecord& record, const GroupState& next) {
  record.restarts = next.restarts();
  record.next_reason = next.restart_reason;
  record.stop_signal = next.stop_signal;
  if (next.stuck) {
    record.cause = static_cast<size_t>(*next.stuck);
    record.exit_code = kExitHang;
    record.next_reason = record.workers[record.cause].hang.empty()
                             ? "a restart would not help, because a worker hangs in the kernel"
                             : "a restart would not help, because other workers have finished";
  }
  if (next.phase == Phase::kTimedOut) {
    record.exit_code = kExitTimedOut;
    record.next_reason = "the job's time (--timeout) is over";
  }
}

}  // namespace rankrun::agent
