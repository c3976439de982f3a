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

// Starting a job from a program: the counterpart of torch's elastic_launch.
// The rankrun program runs it; nothing is forked in the caller, no thread is
// started, no signal is touched, and only that one child is waited for.
namespace rankrun {

// What to start. Whatever is left empty is as rankrun has it by default.
struct LaunchSpec {
  std::vector<std::string> program = {};  // and its arguments; *.py runs under Python
  int workers = 1;                        // on this node
  int max_restarts = 0;
  std::map<std::string, std::string> environment = {};             // besides the caller's own
  std::string directory = {};                                      // the job's current folder
  std::string log_dir = {};                                        // for the workers' log files
  std::optional<std::chrono::milliseconds> shutdown_timeout = {};  // from a signal to SIGKILL
  std::optional<std::chrono::milliseconds> save_timeout = {};      // the same while a worker saves
  std::optional<std::chrono::milliseconds> time_limit = {};        // then the job is stopped
  std::vector<std::string> flags = {};  // more of rankrun's, "--master-port=29500"
  int stdin_fd = 0;                     // the job's standard input; likewise the others
  int stdout_fd = 1;
  int stderr_fd = 2;
  std::string executable = {};  // rankrun; else $RANKRUN_EXECUTABLE, beside this library, in PATH
};

// How a worker of the last attempt ended.
struct WorkerEnd {
  int global_rank = 0;
  int local_rank = 0;
  pid_t pid = 0;                 // 0: it was never started
  std::optional<int> exit_code;  // if it ended by itself
  std::optional<int> signal;     // that killed it
  bool sent_by_rankrun = false;  // that signal
  std::string why;               // "killed by SIGKILL, not sent by rankrun"
  std::string exception;         // of its error file, if the job failed; else empty
  std::string stderr_file;       // where its last words are kept; empty: nowhere

  bool succeeded() const { return exit_code == 0; }
};

struct LaunchResult {
  int exit_code = 0;               // as a shell has it: 128 + n after signal n
  std::optional<int> signal;       // by which rankrun itself ended, as somebody asked
  int restarts = 0;                // used
  std::string why;                 // "all workers succeeded", "rank 2 failed: exit code 3"
  std::string report;              // on the last attempt that failed, as printed; else empty
  std::optional<int> cause;        // the global rank that failed first in it
  std::vector<WorkerEnd> workers;  // by global rank
  std::string events;              // all of --events, lines of JSON (docs/events.md)

  bool succeeded() const { return exit_code == 0; }
};

// A job that runs. At its end, or when the calling process dies in whatever
// way, the job is stopped, as by SIGTERM.
// Thread: any; Wait by one at a time.
class RANKRUN_API LaunchHandle {
 public:
  LaunchHandle(LaunchHandle&& other) noexcept;
  LaunchHandle& operator=(LaunchHandle&& other) noexcept;
  // Stops the job if it still runs, and waits for its end: for as long as the
  // spec's shutdown and save timeouts allow the workers.
  ~LaunchHandle();

  // Of rankrun; signals for the job go there.
  pid_t pid() const;

  // Waits for the end of the job. Later calls return the same.
  // Throws DistError if rankrun has refused to start it; the text says why.
  LaunchResult Wait();
  // The same, or nothing if the job still runs after `timeout`.
  std::optional<LaunchResult> WaitFor(std::chrono::milliseconds timeout);

  // Asks the workers to end (SIGTERM); a second call kills them at once.
  // Returns at once, and does nothing after the job's end.
  void Stop();

 private:
  friend RANKRUN_API LaunchHandle StartLaunch(const LaunchSpec& spec);
  struct State;
  explicit LaunchHandle(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Starts a job. Its processes inherit descriptors 0 to 2 only.
// Throws DistError: the settings are wrong, or there is no rankrun; nothing
// was started then. DistBackendError: the machine could not start it.
RANKRUN_API LaunchHandle StartLaunch(const LaunchSpec& spec);

// Runs a job to its end. Throws as StartLaunch and Wait do: workers that fail
// are a result, no exception.
RANKRUN_API LaunchResult Launch(const LaunchSpec& spec);

// The path of this program, for a job whose workers are this program again:
// the counterpart of torch.multiprocessing.spawn. `arguments` tell it that it
// is a worker; its settings may then be changed as those of any other.
RANKRUN_API LaunchSpec OwnProgram(std::vector<std::string> arguments);

}  // namespace rankrun
