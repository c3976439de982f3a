#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/memory_events.h"
#include "base/activity.h"
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
  std::string node = {};  // its name; empty in a job of one node
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;                           // 0: it was never started
  std::optional<ProcessExit> exit;         // nothing: it could not be started
  std::optional<Error> start_error;        // then this is why
  int sent_signal = 0;                     // the last signal that rankrun had sent before the end
  int passed_signal = 0;                   // the last one that rankrun passed on (SIGUSR1)
  std::optional<ExpiredTimer> timer = {};  // that had a signal sent to it (torchrun's file timer)
  TimePoint ended{};
  std::string stdout_tail;               // at most the last 64 KiB
  std::string stderr_tail;               // likewise
  std::string stdout_file;               // where all of it is kept; empty: nowhere
  std::string stderr_file;               // where all or the tail of it is kept; empty: nowhere
  std::optional<std::string> exception;  // from its error file
  std::string kill_note;                 // why the kernel may have killed it; or empty
  // By its status page, when it ended or, before that, was told of a death or to
  // end; or empty.
  WorkerActivity activity = {};

  bool failed() const { return !exit || !exit->succeeded(); }
};

// A failed attempt.
struct AttemptRecord {
  int attempt = 0;
  int max_restarts = 0;
  bool restarts = false;                   // another attempt follows
  std::optional<int> restart_number = {};  // its number, if that is not the attempt's
  bool is_free = false;                    // and is not counted as a restart
  std::string own_cause = {};              // why rankrun ended it, if no worker was the cause
  std::string next_reason = {};            // of the restart ("at once"), or why there is none
  int stop_signal = 0;                     // somebody asked rankrun to stop: no attempt follows
  std::optional<int> exit_code = {};       // of the job, if that is not the cause's own
  Duration lasted{};
  size_t cause = 0;  // index of the worker that failed first, by causality
  std::vector<WorkerRecord> workers;
  std::optional<MemoryEvents> memory_before;  // the attempt
  // Of a launcher around us, which gets a copy of the cause's; empty: none.
  std::string parent_error_file = {};
};

// The file into which the launcher around this one, if there is one, wants to
// be told: TORCHELASTIC_ERROR_FILE of "NAME=value" entries, else empty. Pure.
std::string ParentErrorFile(const std::vector<std::string>& environment);

// "exit code 3", "killed by SIGTERM, sent by rankrun", "could not be started: ...".
std::string HowItEnded(const WorkerRecord& worker);

// "rank 5 on node n3 was killed by SIGKILL, not sent by rankrun"; of a job of
// one node, `node_name` is empty.
std::string DeathWord(const WorkerRecord& worker, const std::string& node_name = {});

// The exit code of a job that ended with this attempt: the cause's own, 128+n
// for signal n, 127 or 126 (not found, not executable) if it never started, 1
// if our signal came before its own end did.
int ExitCodeOf(const WorkerRecord& cause);

}  // namespace rankrun::agent
