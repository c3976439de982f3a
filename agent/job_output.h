#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "agent/console.h"
#include "agent/console_sink.h"
#include "agent/job_spec.h"
#include "agent/log_directory.h"
#include "agent/log_writer.h"
#include "agent/output_stream.h"

namespace rankrun::agent {

// Where the output of a job's workers goes, as its OutputSpec says: the
// console, log files, filtered files; and what rankrun itself says.
// Thread: loop.
class JobOutput {
 public:
  // `spec` outlives it. `on_progress`: something was written, or given up.
  JobOutput(Loop& loop, const JobSpec& spec, const std::function<void()>& on_progress);

  // Makes the folder of logs, or goes on with the one of an agent that has died.
  // In one for temporary files that may fail: said, and there are no files.
  // Errors: kInvalid, a named one cannot be made.
  Result<void> OpenLogs(const std::optional<JobFolder>& before);
  // Removes it, unless it is to be kept or was named.
  void CloseLogs() { logs_.reset(); }
  LogDirectory* logs() { return logs_ ? &*logs_ : nullptr; }

  // Before the streams of an attempt, and after them.
  void BeginAttempt(int attempt, int first_rank);
  void EndAttempt();
  std::unique_ptr<OutputStream> StreamFor(int attempt, int local_rank, Console::Channel channel);

  // Whole lines of rankrun's own, to standard error.
  void Say(std::string_view lines) { console_.Say(lines); }

  // All has been written.
  bool idle() const { return console_.queued_bytes() == 0 && writer_.idle(); }

 private:
  StreamPlan PlanFor(int local_rank, Console::Channel channel) const;
  bool OneIsShown() const;
  bool AsksAtTerminal(int local_rank) const;
  std::string FilePath(int attempt, int local_rank, Console::Channel channel) const;
  ConsoleSink::Options ConsoleOptions(int local_rank, Console::Channel channel) const;

  Loop& loop_;
  const JobSpec& spec_;
  Console console_;
  LogWriter writer_;
  std::optional<LogDirectory> logs_;
  LogWriter::Entry* filtered_[2] = {};  // by channel; null: no such file
  int first_rank_ = 0;                  // global, of the node's first worker
  bool alone_ = false;                  // one worker at most is shown
};

}  // namespace rankrun::agent
