#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/worker_sample.h"
#include "agent/output/output_stream.h"
#include "agent/report/attempt_record.h"
#include "base/fd.h"
#include "base/process/spawn.h"
#include "base/result.h"
#include "base/status/status_page.h"
#include "base/status/step_notice.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// One worker of one attempt: its process, its status page and its output.
// Records its end, but decides nothing.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Worker {
 public:
  struct Streams {
    std::unique_ptr<OutputStream> standard_output;
    std::unique_ptr<OutputStream> standard_error;
  };

  // Calls `on_exit` once, when the record has the exit.
  Worker(Loop& loop, int local_rank, int global_rank, Streams streams,
         std::function<void()> on_exit);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Opens the descriptors that the process inherits. May be called again after
  // an error.
  // Errors: kExhausted, kSystem.
  Result<void> Prepare();

  // Adds the descriptors that the process inherits to `spec`, after Prepare.
  void Equip(SpawnSpec& spec) const;
  std::string StatusPath() const { return status_page_->Path(); }

  // Report the result of the start.
  void OnStarted(SpawnedProcess process);
  void OnStartFailed(Error error);
  // Releases the descriptors, which others may need, until Prepare is called
  // again.
  void OnPostponed();

  // Sends a signal that is meant to end the worker, if it runs, and records it: to its first
  // process alone if that takes it, else to its process group. Continues stopped processes.
  void Signal(int signal_number);
  // Passes a signal on that is not meant to end the worker: SIGUSR1 and SIGUSR2 only to processes
  // that handle it, of `descendants` of this process. Returns whether there was one.
  bool Pass(int signal_number, const std::vector<pid_t>& descendants);
  // Sends the last signal of Signal again, which a debugger may have kept to itself.
  void SignalAgain();

  // Returns whether it was signalled to end before it ended.
  bool WasStopped() const { return record_.sent_signal != 0; }
  // Returns whether a process that it has left behind was in its process group when that was
  // signalled to end.
  bool HasSignalled(pid_t leftover) const;

  // Reaps the process and calls on_exit if it has ended.
  void CheckExit();

  // Returns whether the worker is saving, by its status page.
  bool IsSaving() const { return pid_ && status_page_->saving(); }
  // Returns the last step that the worker has noted on its status page.
  std::optional<StepNotice> LastStep() const;
  // Returns its state, by its status page. Before its start and after a failure, only its ranks.
  WorkerSample Sample() const;
  // Publishes the death of another worker on the status page, if this one still
  // runs.
  void PublishPeerDeath(std::string_view message);
  // Lets it know that the debugger of its stop number `hold` has ended, so that it goes on.
  void PublishDebuggerEnd(uint32_t hold);
  void NoteHang(std::string why) { record_.hang = std::move(why); }
  void NoteTimer(ExpiredTimer timer) { record_.timer = std::move(timer); }

  bool IsProcess(pid_t pid) const { return pid_ == pid; }
  const StatusPage* status_page() const { return status_page_.get(); }
  const OutputStream& standard_output() const { return *streams_.standard_output; }
  const OutputStream& standard_error() const { return *streams_.standard_error; }
  const WorkerRecord& record() const { return record_; }

  // Completes the record with the tails of the output and moves it out.
  WorkerRecord TakeRecord();

  // Shows a line that it has begun, because it waits for input.
  void ShowOpenLine();

  // Resumes reading its output, because the consumer may have room again.
  void ResumeOutput();

  // Closes the descriptors of a process that has ended and of finished output.
  // Not to be called inside a callback.
  void ReleaseDescriptors();

 private:
  void SendEndSignal(int signal_number);
  bool PassNotice(int signal_number, const std::vector<pid_t>& descendants) const;
  // Records the activity on its status page, the first time only. Later
  // activity may be a reaction to a peer's death or to our signal.
  void NoteActivity();

  Loop& loop_;
  Streams streams_;
  std::function<void()> on_exit_;
  WorkerRecord record_;
  std::shared_ptr<StatusPage> status_page_;  // null until Prepare; the record owns it, too
  std::vector<int> early_signals_;           // to be passed on once the pid is known
  bool group_signalled_ = false;             // its process group was signalled to end
  std::optional<pid_t> pid_;                 // reset as soon as the process is reaped
  ProcessHandle handle_;
  std::unique_ptr<Poll> exit_poll_;
};

}  // namespace rankrun::agent
