#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/export.h>

// Starts a job from a program: the counterpart of torch's elastic_launch. The
// job runs in the rankrun program, which is the caller's only new child. The
// caller gets no thread and no signal handler, and no other child is waited
// for.
namespace rankrun {

// Description of a job. An empty field means the default of rankrun.
struct LaunchSpec {
  std::vector<std::string> program = {};  // with its arguments; *.py runs under Python
  int workers = 1;                        // on this node
  int max_restarts = 0;
  std::map<std::string, std::string> environment = {};             // added to the caller's
  std::string directory = {};                                      // working folder of the job
  std::string log_dir = {};                                        // folder of workers' log files
  std::optional<std::chrono::milliseconds> shutdown_timeout = {};  // from a signal to SIGKILL
  std::optional<std::chrono::milliseconds> save_timeout = {};      // as above, for a saving worker
  std::optional<std::chrono::milliseconds> time_limit = {};        // run time of the job
  std::vector<std::string> flags = {};  // further flags of rankrun, "--master-port=29500"
  int stdin_fd = 0;                     // descriptors that the job uses as its own 0, 1 and 2
  int stdout_fd = 1;
  int stderr_fd = 2;
  // Path of rankrun. Empty: $RANKRUN_EXECUTABLE, then beside this library, then
  // PATH.
  std::string executable = {};
};

// End of one worker of the last attempt.
struct WorkerEnd {
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;                 // 0: never started
  std::optional<int> exit_code;  // unless a signal killed it
  std::optional<int> signal;     // that killed it
  bool sent_by_rankrun = false;  // whether rankrun sent that signal
  std::string why;               // "killed by SIGKILL, not sent by rankrun"
  std::string exception;         // from its error file if the job failed; may be empty
  std::string stderr_file;       // file with the end of its stderr; empty: none

  bool succeeded() const { return exit_code == 0; }
};

struct LaunchResult {
  int exit_code = 0;               // of rankrun; 128 + n after signal n
  std::optional<int> signal;       // that ended rankrun itself
  int restarts = 0;                // number of restarts used
  std::string why;                 // "all workers succeeded", "rank 2 failed: exit code 3"
  std::string report;              // of the last failed attempt, as printed; empty: none failed
  std::optional<int> cause;        // global rank that failed first in that attempt
  std::vector<WorkerEnd> workers;  // by global rank
  std::string events;              // output of --events, lines of JSON (docs/events.md)

  bool succeeded() const { return exit_code == 0; }
};

// Handle of a running job. The job is stopped as by SIGTERM when the handle is
// destroyed or the calling process dies.
// Thread: any; one thread at a time calls Wait or WaitFor.
class RANKRUN_API LaunchHandle {
 public:
  LaunchHandle(LaunchHandle&& other) noexcept;
  LaunchHandle& operator=(LaunchHandle&& other) noexcept;
  // Stops the job if it still runs and waits for its end, at most for the
  // shutdown and save time-outs of the spec.
  ~LaunchHandle();

  // Pid of rankrun, the process to signal.
  pid_t pid() const;

  // Waits for the end of the job. Later calls return the same result.
  // Throws DistError with the cause if rankrun refused to start the job.
  LaunchResult Wait();
  // As Wait; returns no value if the job still runs after `timeout`.
  std::optional<LaunchResult> WaitFor(std::chrono::milliseconds timeout);

  // Asks the workers to end (SIGTERM); a second call kills them. Never waits,
  // and does nothing after the end of the job.
  void Stop();

 private:
  friend RANKRUN_API LaunchHandle StartLaunch(const LaunchSpec& spec);
  struct State;
  explicit LaunchHandle(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Starts a job. Its processes inherit descriptors 0 to 2 only.
// Throws DistError if settings are wrong or rankrun is not found; nothing was
// started. Throws DistBackendError if the machine could not start the process.
RANKRUN_API LaunchHandle StartLaunch(const LaunchSpec& spec);

// Runs a job to its end. Throws as StartLaunch and Wait do. Failed workers are
// a result, not an exception.
RANKRUN_API LaunchResult Launch(const LaunchSpec& spec);

// Returns a spec whose workers run this same program; for functions in processes of
// their own there is spawn.h. `arguments` let the program detect that it is a
// worker. The caller may change all fields.
RANKRUN_API LaunchSpec OwnProgram(std::vector<std::string> arguments);

}  // namespace rankrun
