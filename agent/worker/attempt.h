#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/job/node_place.h"
#include "agent/job/worker_step.h"
#include "agent/lifecycle/worker_group.h"
#include "agent/machine/machine_share.h"
#include "agent/output/job_output.h"
#include "agent/output/stdin_feed.h"
#include "agent/report/attempt_record.h"
#include "agent/worker/stdin_loans.h"
#include "agent/worker/timer_server.h"
#include "agent/worker/worker.h"
#include "agent/worker/worker_environment.h"
#include "base/fd.h"
#include "base/process/spawner.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// The workers of one attempt, from their start to their records.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Attempt {
 public:
  struct Callbacks {
    std::function<void(int local_rank)> on_started;
    std::function<void(const WorkerRecord&, EndKind)> on_ended;  // also if its start failed
  };

  // Resources of the job that outlive the attempt.
  struct Context {
    Loop& loop;
    const JobSpec& spec;
    Spawner& spawner;
    Spawner::OtherWay fork;  // by a preloader; empty: workers are executed
    JobOutput& output;
    StdinSource& input;
    const MachineShare& share;
    int null_fd;                  // /dev/null: default standard input of workers
    std::string save_fifo;        // path; empty: none
    std::string timer_file;       // path; empty: none
    std::string breakpoint_pipe;  // path; empty: none
  };

  Attempt(const Context& context, NodePlace place, Callbacks callbacks);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  // Starts all workers. If the machine has too few descriptors or processes left, retries each
  // second, until ten times in a row no worker could start. Never calls back before it returns.
  void Start();

  // Publishes the death of a peer to all running workers. The attempt does so itself if a
  // worker fails before any was signalled, unless the others continue.
  void PublishPeerDeath(std::string_view message);

  void SignalAllBut(const std::set<int>& spared_local_ranks, int signal_number);
  void Signal(int signal_number, int local_rank);

  // Passes on a signal that is not meant to end the workers (SIGUSR1, SIGSTOP, SIGCONT).
  // Returns the global ranks of the running workers without a process that handles it.
  std::vector<int> Pass(int signal_number);

  // Returns whether a sweep spares a process that a stopped worker has left behind: from
  // SIGKILL, and from SIGTERM if it has got the signal of the stop.
  bool SparesLeftover(pid_t pid, int signal_number) const;

  // Returns the workers that have begun or ended to save since the last call.
  std::vector<WorkerSaves> TakeSavingChanges();

  std::vector<WorkerStep> LastSteps() const;  // that workers have noted on their status pages
  // Returns the state of each running or succeeded worker, without `process`. Never blocks.
  std::vector<WorkerSample> Samples() const;

  std::vector<pid_t> Running() const;  // pids of the running workers
  // Returns the local rank of a running worker; nothing for any other pid.
  std::optional<int> LocalRankOf(pid_t pid) const;

  std::vector<int> Unfinished() const;  // local ranks of the workers that have not ended yet

  // Publishes the end of the debugger of stop number `hold`, and repeats the signal to end.
  void PublishDebuggerEnd(int local_rank, uint32_t hold);

  // Records that a worker hangs, before it is signalled.
  void NoteHang(int local_rank, const std::string& why);

  // Records that a timer of a worker has expired. Returns the worker's relation
  // to the process, for a message: " (rank 2)", ", below rank 2", or nothing.
  std::string NoteTimer(const TimerServer::Expired& expired);

  // Checks whether the worker with this pid has exited. Returns false if no worker has the pid.
  bool CheckExitOf(pid_t pid);

  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }  // by local rank
  TimePoint started() const { return started_; }

  // Resumes reading the workers' output, because its consumer may have room again.
  void ResumeOutput();

  // Returns the record of the attempt after its end. The caller sets `restarts`.
  AttemptRecord TakeRecord();

 private:
  void StartWorker(int local_rank);
  void OnStartResult(int local_rank, Result<SpawnedProcess> result);
  void Conclude(int local_rank, Result<SpawnedProcess> result);
  void Retry();
  void RetryNext();
  void OnEnded(int local_rank);
  SpawnSpec SpecFor(int local_rank) const;
  Result<void> Prepare(int local_rank);
  int StdinFor(int local_rank) const;
  std::unique_ptr<StdinLoans> LoansOfTerminal();

  const Context context_;
  const NodePlace place_;
  Callbacks callbacks_;
  const std::string torch_dumps_;  // beginning of the paths for PyTorch's; empty: none
  const WorkerEnvironment environment_;
  const std::shared_ptr<std::once_flag> attempt_folder_ = std::make_shared<std::once_flag>();
  const int oom_score_;  // of the workers
  TimePoint started_;
  std::optional<MemoryEvents> memory_before_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by local rank
  std::vector<size_t> ended_;                     // local ranks, in the order of their ends
  bool stopping_ = false;                         // workers were signalled to end
  std::string victims_death_;                     // of a worker, not published yet; or empty
  std::set<int> postponed_;                       // local ranks whose start is to be retried
  std::optional<int> retried_;                    // local rank whose start is being retried
  std::string retry_reason_;                      // error of the last postponed start
  int retries_left_;                              // until a retry starts a worker
  std::unique_ptr<StdinFeed> feed_;               // null: workers do not share our standard input
  std::unique_ptr<StdinLoans> loans_;             // null: no worker borrows it
  std::set<int> saving_;                          // local ranks that were saving at the last look
  Timer retry_;
  Timer release_;  // releases descriptors outside the workers' callbacks
};

}  // namespace rankrun::agent
