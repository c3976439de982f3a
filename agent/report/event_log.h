#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/guardian/guardian_link.h"
#include "agent/job/job_record.h"
#include "agent/job/job_spec.h"
#include "agent/lifecycle/worker_group.h"
#include "agent/report/event.h"
#include "agent/report/event_file.h"
#include "agent/report/event_ring.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Writes the events of a job: turns the supervisor's observations and decisions
// into events, and sends them to the outputs that the job's settings name.
// Thread: loop.
class EventLog {
 public:
  struct Outputs {
    std::function<void(std::string_view text)> show;  // to standard error
    std::function<void()> on_progress;                // when written() may have changed
    // Gets each event, also if it is written nowhere; may be empty.
    std::function<void(const std::shared_ptr<const events::Event>& event)> on_event = {};
  };

  // `spec` outlives this object. Blocks while the file is opened.
  // Errors: kInvalid if the file cannot be opened.
  static Result<std::unique_ptr<EventLog>> Open(Loop& loop, const JobSpec& spec, Outputs outputs);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Writes AgentRestarted in a later incarnation of the agent.
  void JobStarted(pid_t guardian, const JobRecord& record);
  void AttemptStarted(int attempt, uint16_t store_port);
  void WorkerStarted(const WorkerRecord& worker);
  void WorkerEnded(const WorkerRecord& worker);
  // The workers hang, which precedes their ends.
  void NoteHang(const std::string& text) { failure_ = hang_ = text; }
  // Writes StopBegun or Kill if the step of the worker group begins one.
  void Stepped(const GroupState& before, const GroupState& after);
  void LeftBehind(const std::vector<pid_t>& pids, int signal_number);
  void NodeLost(const std::string& why) { Emit(attempt_, events::NodeLost{why}); }
  // The coordinator, which runs in this agent, has decided.
  void Decided(std::optional<int> attempt, const events::Decision& decision) {
    Emit(attempt, events::PayloadOf(decision));
  }
  void Restart(const AttemptRecord& failed, Duration delay);
  // The user asks for another attempt, which is not counted.
  void RestartAsked(int restarts, const std::string& why);
  void Report(const AttemptRecord& record, const std::string& text);
  // Writes the last event. Later calls do nothing.
  void JobEnded(const Goodbye& goodbye);

  // The last events, for `rankctl`.
  EventRing& ring() { return ring_; }

  // Returns whether all events are written, or a second has passed since
  // JobEnded.
  bool written() const;

 private:
  EventLog(Loop& loop, const JobSpec& spec, Outputs outputs);
  std::string OwnReason(const GroupState& state) const;
  std::string WhyKilled(const GroupState& before, const GroupState& after) const;
  void Emit(std::optional<int> attempt, events::Payload payload);
  void Write(std::optional<int> attempt, events::Payload payload);

  const JobSpec& spec_;
  Outputs outputs_;
  std::unique_ptr<EventFile> file_;  // null: no events file
  EventRing ring_;
  Timer end_timer_;
  bool ended_ = false;
  bool end_timed_out_ = false;
  TimePoint started_;
  int attempt_ = 0;
  std::map<int, TimePoint> worker_starts_;  // by local rank, of this attempt
  std::string failure_;                     // text of the first failure of this attempt
  std::string hang_;                        // why this attempt hung; empty: it did not
  std::string verdict_;                     // text of the cause of the last failed attempt
  std::string own_verdict_;                 // instead of it, if rankrun itself ended the job
};

// Writes the only event of a job that is refused. May block, so call it only
// before the process ends.
void WriteRefusal(const JobSpec& spec, const Error& error, int exit_code);

// Writes the last event of a job whose agent is dead, likewise.
void WriteEndWithoutAgent(const JobRecord& job, const Goodbye& end, const std::string& why);

}  // namespace rankrun::agent
