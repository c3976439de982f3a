#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/event.h"
#include "agent/event_file.h"
#include "agent/guardian_link.h"
#include "agent/job_record.h"
#include "agent/job_spec.h"
#include "agent/worker_group.h"
#include "base/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Tells programs what happens to a job: makes events of what the supervisor
// sees and decides, and sends them where the job's settings say.
// Thread: loop.
class EventLog {
 public:
  struct Outlets {
    std::function<void(std::string_view text)> show;  // on standard error
    std::function<void()> on_progress;                // when written() may have changed
  };

  // `spec` outlives it. Blocks as opening a file does.
  // Errors: kInvalid, the file cannot be opened.
  static Result<std::unique_ptr<EventLog>> Open(Loop& loop, const JobSpec& spec, Outlets outlets);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Or goes on, in a later incarnation of the agent.
  void JobStarted(pid_t guardian, const JobRecord& record);
  void AttemptStarted(int attempt, uint16_t store_port);
  void WorkerStarted(const WorkerRecord& worker);
  void WorkerEnded(const WorkerRecord& worker);
  // A step of the worker group's state: where a stop or a kill begins.
  void Stepped(const GroupState& before, const GroupState& after);
  void LeftBehind(const std::vector<pid_t>& pids, int signal_number);
  void NodeLost(const std::string& why) { Emit(attempt_, events::NodeLost{why}); }
  void Restart(const AttemptRecord& failed, Duration delay);
  void Report(const AttemptRecord& record, const std::string& text);
  // The last event, once; later calls do nothing.
  void JobEnded(const Goodbye& goodbye);

  // All events are where they belong, or a second has passed since the last.
  bool written() const;

 private:
  EventLog(Loop& loop, const JobSpec& spec, Outlets outlets);
  std::string OwnReason(const GroupState& state) const;
  std::string WhyKilled(const GroupState& before, const GroupState& after) const;
  bool wanted() const { return file_ != nullptr || spec_.events_console; }
  void Emit(std::optional<int> attempt, events::Happening what);
  void Write(std::optional<int> attempt, events::Happening what);

  const JobSpec& spec_;
  Outlets outlets_;
  std::unique_ptr<EventFile> file_;  // null: none is wanted
  Timer patience_;
  bool ended_ = false;
  bool out_of_patience_ = false;
  TimePoint started_;
  int attempt_ = 0;
  std::map<int, TimePoint> worker_starts_;  // by local rank, of this attempt
  std::string failure_;                     // the first of this attempt, in words
  std::string verdict_;                     // the cause of the last failed attempt
  std::string own_verdict_;                 // instead, if rankrun itself ended the job
};

// The only event of a job that was refused. For a process that ends next: it
// blocks as the file does.
void WriteRefusal(const JobSpec& spec, const Error& error, int exit_code);

}  // namespace rankrun::agent
