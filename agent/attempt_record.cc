#include "agent/attempt_record.h"

namespace rankrun::agent {

int ExitCodeOf(const WorkerRecord& cause) {
  // As shells have it.
  constexpr int kNotFound = 127;
  constexpr int kCannotExecute = 126;
  if (cause.exit) return cause.exit->ShellCode();
  bool found = !cause.start_error || cause.start_error->code != ErrorCode::kNotFound;
  return found ? kCannotExecute : kNotFound;
}

}  // namespace rankrun::agent
