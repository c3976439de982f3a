#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/output/console.h"
#include "agent/output/console_sink.h"
#include "agent/output/log_directory.h"
#include "agent/output/log_writer.h"
#include "agent/output/output_stream.h"

namespace rankrun::agent {

// Destinations of the workers' output as OutputSpec defines them (console, log
// files, filtered files), and of rankrun's own messages.
// Thread: loop.
class JobOutput {
 public:
  // `spec` must outlive this object. Calls `on_progress` after output was
  // written or given up.
  JobOutput(Loop& loop, const JobSpec& spec, const std::function<void()>& on_progress);

  // Creates the folder of logs, or takes over the folder of an agent that has
  // died. If a temporary folder cannot be created, warns and continues without
  // files.
  // Creates the folder of traces, too.
  // Errors: kInvalid if a named folder cannot be created.
  Result<void> OpenLogs(const std::optional<JobFolder>& before);
  // Removes the folder unless it was named or is to be kept, and folders of earlier jobs. Names
  // kept files whose folder no message has named.
  void CloseLogs();
  const std::string& trace_dir() const { return trace_dir_; }  // absolute; empty: no traces
  LogDirectory* logs() { return logs_ ? &*logs_ : nullptr; }

  // Call these before and after the streams of an attempt.
  void BeginAttempt(int attempt, int first_rank);
  void EndAttempt();
  std::unique_ptr<OutputStream> StreamFor(int attempt, int local_rank, Console::Channel channel);

  // Writes whole lines of rankrun's own to standard error.
  void Say(std::string_view lines);
  void NoteTypedLine() { console_.NoteTypedLine(); }

  // Leaves the console to one worker, until the next call; empty: to all. The streams of the
  // others are full meanwhile.
  void HoldAllBut(std::optional<int> local_rank) { console_.HoldAllBut(local_rank); }

  // Returns whether all output has been written.
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
  bool has_named_logs_ = false;  // a message had their folder
  std::string trace_dir_;
  LogWriter::Entry* filtered_[2] = {};  // by channel; null: no such file
  int first_rank_ = 0;                  // global rank of the node's first worker
  bool alone_ = false;                  // at most one worker is shown
};

}  // namespace rankrun::agent
