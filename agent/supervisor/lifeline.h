#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "base/process/process_handle.h"
#include "base/result.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Watches the program that wants the job: by an inherited pipe or socket whose
// other end that program holds open, so that any death of it closes that end,
// or by its pid. Data that arrives is discarded.
// Thread: loop.  Lifetime: may not end inside its callback.
class Lifeline {
 public:
  // Calls `on_end` once, when the other end is closed.
  // Errors: kInvalid, "--lifeline <fd>: <reason>".
  static Result<std::unique_ptr<Lifeline>> Watch(Loop& loop, int fd, std::function<void()> on_end);
  // Calls `on_end` once, when the process ends.
  // Errors: kNotFound if it is gone already, kSystem.
  static Result<std::unique_ptr<Lifeline>> WatchProcess(Loop& loop, pid_t pid,
                                                        std::function<void()> on_end);
  // Watches all that the job depends on: --lifeline, and its mpirun. `on_end`
  // gets the name of the program that has ended.
  // Errors: those of Watch.
  static Result<std::vector<std::unique_ptr<Lifeline>>> WatchAll(
      Loop& loop, const JobSpec& spec, const std::function<void(const std::string&)>& on_end);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

 private:
  Lifeline(int fd, std::function<void()> on_end);
  void OnReadable();
  void End();

  ProcessHandle process_;  // of the process, if one is watched; outlives `poll_`
  const int fd_;
  std::function<void()> on_end_;
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent
