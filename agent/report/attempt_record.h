#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/memory_events.h"
#include "agent/report/ending.h"
#include "agent/stacks/worker_stacks.h"
#include "base/clock.h"
#include "base/process/spawn.h"
#include "base/result.h"
#include "base/status/activity.h"

namespace rankrun {
class StatusPage;
}

namespace rankrun::agent {

// A timer of a worker that has expired.
struct ExpiredTimer {
  std::string scope;
  int signal_number;
  TimePoint at;
};

// One of the last operations of a worker, when its activity was noted.
struct LastOperation {
  std::string what;   // "AllReduce #12 (16 x float32, sum)"
  std::string group;  // name
  bool is_under_way;
  bool has_failed;
  Duration ago;  // since its begin if it is under way, or else since its end
};

// A call of a worker in a group of PyTorch, by its flight recorder.
struct GroupCall {
  std::string group;     // "default_pg"
  std::string what;      // "all_reduce #4"
  int64_t sequence = 0;  // of the collectives of the group
  bool is_message = false;
  bool is_done = false;
};

// How one worker ended in an attempt: the evidence for a report.
struct WorkerRecord {
  std::string node = {};  // name; empty in a job of one node
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;                           // 0: never started
  std::optional<ProcessExit> exit;         // empty: could not be started
  std::optional<Error> start_error;        // why it could not be started
  int sent_signal = 0;                     // the last signal that rankrun sent before the end
  int passed_signal = 0;                   // the last one that rankrun passed on (SIGUSR1)
  std::optional<ExpiredTimer> timer = {};  // that signalled it (torchrun's file timer)
  TimePoint ended{};
  std::string stdout_tail;                  // at most the last 64 KiB
  std::string stderr_tail;                  // likewise
  std::string stdout_file;                  // with all of it; empty: none
  std::string stderr_file;                  // with all of it or the tail; empty: none
  std::optional<std::string> exception;     // from its error file
  std::optional<bool> reads_terminal = {};  // it could get input from a terminal
  std::string hang = {};                    // why the agent judged that it hangs; empty: it did not
  std::string kill_note;                    // why the kernel may have killed it; empty: unknown
  // From its status page at the first of: its end, a peer's death, a signal to
  // end. Empty: unknown.
  WorkerActivity activity = {};
  std::optional<Ending> ending = {};  // judged from all its output; empty: not yet
  uint64_t noted_ticks = 0;           // Ticks() of that moment; 0: never
  // Memory with its operations, until they are in the two fields below; may be null.
  std::shared_ptr<const StatusPage> status_page = {};
  // The last three, oldest first: of the cause and of one other worker in an operation.
  std::vector<LastOperation> last_operations = {};
  std::string operations_file = {};          // with all of them; empty: none
  std::vector<std::string> dump_files = {};  // where PyTorch may have dumped its calls
  std::vector<GroupCall> calls = {};         // the last of each group; empty: unknown
  WorkerStacks stacks = {};                  // before our SIGKILL; empty: not taken

  bool failed() const { return !hang.empty() || !exit || !exit->succeeded(); }
};

// Workers that ended alike and that a report counts only (left_out.h).
struct LeftOut {
  EndKind kind = EndKind::kSucceeded;
  ProcessExit exit = {};
  int sent_signal = 0;
  bool is_mixed = false;         // they ended in several ways; the fields above mean nothing
  std::vector<int> bounds = {};  // first and last global rank of each range, ascending
  int64_t count = 0;             // of all; the ranges may list fewer
};

// A failed attempt.
struct AttemptRecord {
  int attempt = 0;
  int max_restarts = 0;
  bool restarts = false;                   // another attempt follows
  std::optional<int> restart_number = {};  // number of the restart, if that is not the attempt's
  bool is_free = false;                    // the restart is not counted
  std::string own_cause = {};         // why rankrun ended the attempt, if no worker was the cause
  std::string cause_nodes = {};       // those of all causes so far; empty: this is the only one
  std::string next_reason = {};       // of the restart ("at once"), or why there is none
  int stop_signal = 0;                // request to stop, after which no attempt follows; 0: none
  std::optional<int> exit_code = {};  // of the job, if it is not that of the cause
  Duration lasted{};
  Duration waited{};               // from the start of the job to that of the first attempt
  size_t cause = 0;                // index of the worker whose failure caused the others
  std::vector<size_t> ended = {};  // indices of the workers in the order of their ends
  std::vector<WorkerRecord> workers;
  std::vector<LeftOut> left_out = {};            // consequences beside `workers`
  std::vector<std::string> store_refusals = {};  // requests over a limit, with their ranks
  std::optional<MemoryEvents> memory_before;     // at the start
  // Path at which an outer launcher expects a copy of the cause's error file;
  // empty: none.
  std::string parent_error_file = {};
};

// Returns the error file of an outer launcher: TORCHELASTIC_ERROR_FILE in
// entries "NAME=value", or empty. Pure.
std::string ParentErrorFile(const std::vector<std::string>& environment);

// Returns "exit code 3", "killed by SIGTERM, sent by rankrun" or "could not be
// started: ...".
std::string HowItEnded(const WorkerRecord& worker);

// Returns the message that a worker's peers get about its death, such as "rank
// 5 on node n3 was killed by SIGKILL, not sent by rankrun". `node_name` is
// empty in a job of one node.
std::string PeerDeathMessage(const WorkerRecord& worker, const std::string& node_name = {});

// Returns the exit code of a job that ends with this cause: its own code, or
// 128+n for signal n. 203 means that it hung. 127 (not found) or 126 (not
// executable) mean that its start failed. 1 means that our signal killed it while it was
// failing, or that others still needed it when it succeeded.
int ExitCodeOf(const WorkerRecord& cause);

}  // namespace rankrun::agent
