#include "agent/report/attempt_reports.h"

#include <utility>

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

}  // namespace rankrun::agent
