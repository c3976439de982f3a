#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/spawn.h"

namespace rankrun::agent {

// A timer of a worker's own that ran out.
struct ExpiredTimer {
  std::string scope;
  int signal_number;
  TimePoint at;
};

// How one worker's part of an attempt ended: the evidence of a report.
struct WorkerRecord {
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;                           // 0: it was never started
  std::optional<ProcessExit> exit;         // nothing: it could not be started
  std::optional<Error> start_error;        // then this is why
  int sent_signal = 0;                     // the last signal that rankrun had sent before the end
  int passed_signal = 0;                   // the last one that rankrun passed on (SIGUSR1)
  std::optional<ExpiredTimer> timer = {};  // that had a signal sent to it (torchrun's file timer)
  TimePoint ended{};
  std::string stderr_tail;               // at most the last 64 KiB
  std::string stderr_file;               // where that is kept; empty: nowhere
  std::optional<std::string> exception;  // from its error file

  bool failed() const { return !exit || !exit->succeeded(); }
};

// A failed attempt.
struct AttemptRecord {
  int attempt = 0;
  int max_restarts = 0;
  bool restarts = false;              // another attempt follows
  std::string next_reason = {};       // of the restart ("at once"), or why there is none
  int stop_signal = 0;                // somebody asked rankrun to stop: no attempt follows
  std::optional<int> exit_code = {};  // of the job, if that is not the cause's own
  Duration lasted{};
  size_t cause = 0;  // index of the worker that failed first, by causality
  std::vector<WorkerRecord> workers;
};

// The exit code of a job that ended with this attempt: the cause's own, 128+n
// for signal n, 127 or 126 (not found, not executable) if it never started, 1
// if our signal came before its own end did.
int ExitCodeOf(const WorkerRecord& cause);

}  // namespace rankrun::agent
