#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/attempt_record.h"
#include "agent/output_stream.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/spawn.h"
#include "base/status_page.h"
#include "base/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// One worker of one attempt: its process, its status page and its output. It
// records; it decides nothing.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Worker {
 public:
  struct Streams {
    std::unique_ptr<OutputStream> standard_output;
    std::unique_ptr<OutputStream> standard_error;
  };

  // `on_exit` is called once: the record has its exit.
  Worker(Loop& loop, int local_rank, int global_rank, Streams streams,
         std::function<void()> on_exit);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Makes what the process inherits. Can be repeated after an error.
  // Errors: kExhausted, kSystem.
  Result<void> Prepare();

  // Of a prepared worker: puts the descriptors that it inherits into `spec`.
  void Equip(SpawnSpec& spec) const;
  std::string StatusPath() const { return status_page_->Path(); }

  // What became of the start.
  void OnStarted(SpawnedProcess process);
  void OnStartFailed(Error error);
  // It is to be prepared again. Others may need what it has till then.
  void OnPostponed();

  // To its process group, if it is running; the record shows it. `Signal` is
  // meant to end it: a stopped process is continued to see it.
  void Signal(int signal_number);
  void Pass(int signal_number);

  // Reaps the process if it has ended, and calls on_exit then.
  void CheckExit();

  // Whether its status page says that it saves.
  bool Saves() const { return pid_ && status_page_->saving(); }
  // That another worker has died, on its status page, if it may see that.
  void TellDeath(std::string_view word);
  void NoteTimer(ExpiredTimer timer) { record_.timer = std::move(timer); }

  bool IsProcess(pid_t pid) const { return pid_ == pid; }
  const WorkerRecord& record() const { return record_; }

  // The record with the ends of its output, taken out of this object.
  WorkerRecord TakeRecord();

  // What takes its output may have room again.
  void ResumeOutput();

  // Of a process that has ended, and of output that has. Not inside a callback.
  void ReleaseDescriptors();

 private:
  // The first time that its status page says something is what counts: later
  // it has heard of a death, or of us.
  void NoteActivity();

  Loop& loop_;
  Streams streams_;
  std::function<void()> on_exit_;
  WorkerRecord record_;
  std::optional<StatusPage> status_page_;
  std::vector<int> early_signals_;  // to be passed once the process is known
  std::optional<pid_t> pid_;        // forgotten in the instant that reaps it
  Fd pidfd_;
  std::unique_ptr<Poll> exit_poll_;
};

}  // namespace rankrun::agent
