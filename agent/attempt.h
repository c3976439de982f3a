#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/attempt_record.h"
#include "agent/job_output.h"
#include "agent/job_spec.h"
#include "agent/machine_share.h"
#include "agent/node_place.h"
#include "agent/stdin_feed.h"
#include "agent/timer_server.h"
#include "agent/worker.h"
#include "agent/worker_group.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/spawner.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// The workers of one attempt, from their start to their records.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Attempt {
 public:
  struct Callbacks {
    std::function<void(int local_rank)> on_started;
    std::function<void(const WorkerRecord&)> on_ended;  // also when it could not be started
  };

  // Of the whole job; outlives the attempt.
  struct Surroundings {
    Loop& loop;
    const JobSpec& spec;
    Spawner& spawner;
    JobOutput& output;
    StdinSource& input;
    const MachineShare& share;
    int null_fd;            // /dev/null: standard input of workers that have no other
    std::string save_fifo;  // empty: there is none; likewise the other
    std::string timer_file;
  };

  Attempt(const Surroundings& surroundings, NodePlace place, Callbacks callbacks);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  // Starts all workers; one for which the machine has nothing left (descriptors,
  // processes) is tried again each second for a while. Callbacks come later,
  // never from here.
  void Start();

  // Tells all living workers who has died. The attempt does so itself for the
  // first of its own that fails before anybody is signalled, unless the others
  // go on without it.
  void TellDeath(std::string_view word);

  void SignalAllBut(const std::set<int>& spared_local_ranks, int signal_number);
  void Signal(int signal_number, int local_rank);

  // A signal that is not meant to end them (SIGUSR1, SIGSTOP, SIGCONT).
  void Pass(int signal_number);

  // What status pages say about saving that they did not say before.
  std::vector<WorkerSaves> TakeSavingChanges();

  // The processes of those that run, and which local rank one of them is.
  std::vector<pid_t> Running() const;
  std::optional<int> LocalRankOf(pid_t pid) const;

  // Local ranks whose end was not seen yet.
  std::vector<int> Unfinished() const;

  // Keeps for the record that a timer of a worker has expired. Returns who that
  // is, or is below, for a message: " (rank 2)", ", below rank 2", or nothing.
  std::string NoteTimer(const TimerServer::Expired& expired);

  // Looks after a worker whose process has this number, if there is one.
  bool CheckExitOf(pid_t pid);

  const WorkerRecord& record(int local_rank) const {
    return workers_[static_cast<size_t>(local_rank)]->record();
  }

  // What takes the workers' output may have room again.
  void ResumeOutput();

  // What became of it, after its end; `restarts` is left to the caller.
  AttemptRecord TakeRecord();

 private:
  void StartWorker(int local_rank);
  void OnStartResult(int local_rank, Result<SpawnedProcess> result);
  void Retry();
  void OnEnded(int local_rank);
  SpawnSpec SpecFor(int local_rank) const;
  Result<void> Prepare(int local_rank);
  int StdinFor(int local_rank) const;

  const Surroundings around_;
  const NodePlace place_;
  Callbacks callbacks_;
  TimePoint started_;
  std::optional<MemoryEvents> memory_before_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by local rank
  std::vector<size_t> ended_;                     // local ranks, as their ends were seen
  bool stopping_ = false;                         // somebody was signalled
  std::vector<int> postponed_;                    // local ranks to be started again
  std::string retry_reason_;                      // of the last of them
  int retries_left_;
  std::unique_ptr<StdinFeed> feed_;  // null: not everybody reads our standard input
  std::set<int> saving_;             // local ranks, as their status pages said last
  Timer retry_;
  Timer release_;  // what ended workers hold: not in their own callbacks
};

}  // namespace rankrun::agent
