#include "agent/attempt_record.h"

namespace rankrun::agent {

int ExitCodeOf(const WorkerRecord& cause) {
  // As shells have it.
  constexpr int kNotFound = 127;
  constexpr int kCannotExecute = 126;
  constexpr int kException = 1;
  // It was failing when our signal cut it short: its own code never came.
  bool cut_short = cause.exit && cause.exit->signaled && cause.exit->value == cause.sent_signal;
  if (cut_short) return kException;
  if (cause.exit) return cause.exit->ShellCode();
  bool found = !cause.start_error || cause.start_error->code != ErrorCode::kNotFound;
  return found ? kCannotExecute : kNotFound;
}

}  // namespace rankrun::agent
