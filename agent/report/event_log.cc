#include "agent/report/event_log.h"

#include <unistd.h>

#include <utility>

#include "agent/report/verdict.h"
#include "base/format.h"
#include "base/host_name.h"
#include "base/uv/uv_loop.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kEndTimeout{1};

std::string FailureOf(const WorkerRecord& worker) {
  return "rank " + std::to_string(worker.global_rank) + " failed: " + CauseInWords(worker);
}

// "rank 2 failed: exit code 3", or why rankrun ended the attempt.
std::string CauseInWords(const AttemptRecord& record) {
  return record.own_cause.empty() ? FailureOf(record.workers[record.cause]) : record.own_cause;
}

std::string StoppedBy(int signal_number) { return "stopped by " + SignalName(signal_number); }

// Without a loop.
void WriteLastEvent(const std::string& path, const std::string& run_id, events::Payload payload) {
  if (path.empty()) return;
  auto fd = EventFile::OpenDescriptor(path);
  if (!fd) return;
  WriteLastWords(fd->get(), events::FormatEvent({.time = std::chrono::system_clock::now(),
                                                 .run_id = run_id,
                                                 .attempt = std::nullopt,
                                                 .payload = std::move(payload)}));
}

}  // namespace

EventLog::EventLog(Loop& loop, const JobSpec& spec, Outputs outputs)
    : spec_(spec),
      outputs_(std::move(outputs)),
      end_timer_(loop,
                 [this] {
                   end_timed_out_ = true;
                   outputs_.on_progress();
                 }),
      started_(std::chrono::steady_clock::now()) {}

Result<std::unique_ptr<EventLog>> EventLog::Open(Loop& loop, const JobSpec& spec, Outputs outputs) {
  std::unique_ptr<EventLog> log(new EventLog(loop, spec, std::move(outputs)));
  if (spec.events_file.empty()) return log;
  EventLog* raw = log.get();
  auto file = EventFile::Open(
      loop, spec.events_file,
      {.on_failure =
           [raw](const std::string& message) { raw->outputs_.show("rankrun: " + message + "\n"); },
       .on_progress = [raw] { raw->outputs_.on_progress(); }});
  if (!file) return std::move(file).error();
  log->file_ = std::move(*file);
  return log;
}

void EventLog::JobStarted(pid_t guardian, const JobRecord& record) {
  if (record.incarnation > 0) {
    started_ = record.job_began;
    Emit(std::nullopt, events::AgentRestarted{.agent_pid = getpid(),
                                              .incarnation = record.incarnation,
                                              .restarts = record.restarts,
                                              .why = record.last_end});
    return;
  }
  Emit(std::nullopt, events::JobStarted{.version = spec_.version,
                                        .node = HostName(),
                                        .guardian_pid = guardian,
                                        .agent_pid = getpid(),
                                        .workers = spec_.workers,
                                        .max_restarts = spec_.max_restarts,
                                        .program = spec_.program.arguments});
}

void EventLog::AttemptStarted(int attempt, uint16_t store_port) {
  attempt_ = attempt;
  worker_starts_.clear();
  failure_.clear();
  hang_.clear();
  Emit(attempt_, events::AttemptStarted{store_port});
}

void EventLog::WorkerStarted(const WorkerRecord& worker) {
  worker_starts_[worker.local_rank] = std::chrono::steady_clock::now();
  Emit(attempt_, events::WorkerStarted{worker.global_rank, worker.local_rank, worker.pid});
}

void EventLog::WorkerEnded(const WorkerRecord& worker) {
  std::optional<Duration> lasted;
  if (auto start = worker_starts_.find(worker.local_rank); start != worker_starts_.end()) {
    lasted = std::chrono::steady_clock::now() - start->second;
  }
  if (worker.failed() && failure_.empty()) failure_ = FailureOf(worker);
  Emit(attempt_, events::WorkerEnded{worker, lasted});
}

void EventLog::Stepped(const GroupState& before, const GroupState& after) {
  bool asked = before.stop_signal == 0 && after.stop_signal != 0;
  bool out_of_time = !before.timed_out && after.timed_out;
  bool begun = before.phase == Phase::kRunning && after.phase == Phase::kStopping;
  std::string own_reason = OwnReason(after);
  if (asked) {
    Emit(attempt_, events::StopBegun{StoppedBy(after.stop_signal)});
  } else if (out_of_time || begun) {
    Emit(attempt_, events::StopBegun{own_reason.empty() ? failure_ : own_reason});
  }
  bool ends = after.phase == Phase::kTimedOut || after.phase == Phase::kFailed;
  if (ends && !own_reason.empty()) own_verdict_ = own_reason;
  if (!before.kill_now && after.kill_now) Emit(attempt_, events::Kill{WhyKilled(before, after)});
}

// Returns why rankrun itself ends the attempt; empty if it does not.
std::string EventLog::OwnReason(const GroupState& state) const {
  if (state.timed_out) {
    return "the job's time (--timeout " + FormatSeconds(*spec_.time_limit) + ") is over";
  }
  if (state.stuck && !hang_.empty()) return hang_;
  if (state.stuck) return "rank " + std::to_string(*state.stuck) + " hangs in the kernel";
  return "";
}

std::string EventLog::WhyKilled(const GroupState& before, const GroupState& after) const {
  bool deadline_passed = before.phase == Phase::kStopping && after.deadline != before.deadline;
  if (deadline_passed) {
    return "the shutdown timeout of " + FormatSeconds(spec_.shutdown_timeout) + " has passed";
  }
  // A first request kills only if its signal is not one of --signals-to-handle.
  bool first = before.stop_signal == 0;
  if (first) return SignalName(after.stop_signal) + " is not one of --signals-to-handle";
  return "asked to stop a second time";
}

void EventLog::LeftBehind(const std::vector<pid_t>& pids, int signal_number) {
  if (!pids.empty()) Emit(attempt_, events::LeftBehind{signal_number, pids});
}

void EventLog::Restart(const AttemptRecord& failed, Duration delay) {
  Emit(failed.attempt, events::Restart{.number = failed.restart_number.value_or(failed.attempt + 1),
                                       .of = failed.max_restarts,
                                       .delay = std::chrono::ceil<std::chrono::milliseconds>(delay),
                                       .is_free = failed.is_free,
                                       .why = CauseInWords(failed)});
}

void EventLog::RestartAsked(int restarts, const std::string& why) {
  Emit(attempt_, events::Restart{.number = restarts,
                                 .of = spec_.max_restarts,
                                 .delay = std::chrono::milliseconds(0),
                                 .is_free = true,
                                 .why = why});
}

void EventLog::Report(const AttemptRecord& record, const std::string& text) {
  verdict_ = CauseInWords(record);
  Emit(record.attempt, events::Report{record, text});
}

void EventLog::JobEnded(const Goodbye& goodbye) {
  if (std::exchange(ended_, true)) return;
  std::string why = goodbye.exit_code == 0 ? "all workers succeeded" : verdict_;
  if (!own_verdict_.empty()) why = own_verdict_;
  if (goodbye.end_signal != 0) why = StoppedBy(goodbye.end_signal);
  Write(std::nullopt, events::JobEnded{.exit_code = goodbye.exit_code,
                                       .end_signal = goodbye.end_signal,
                                       .why = why,
                                       .restarts = attempt_,
                                       .lasted = std::chrono::steady_clock::now() - started_});
  end_timer_.Start(kEndTimeout);
}

bool EventLog::written() const { return end_timed_out_ || file_ == nullptr || file_->idle(); }

void EventLog::Emit(std::optional<int> attempt, events::Payload payload) {
  if (!ended_) Write(attempt, std::move(payload));
}

void EventLog::Write(std::optional<int> attempt, events::Payload payload) {
  auto event =
      std::make_shared<const events::Event>(events::Event{.time = std::chrono::system_clock::now(),
                                                          .run_id = spec_.run_id,
                                                          .attempt = attempt,
                                                          .payload = std::move(payload)});
  if (outputs_.on_event) outputs_.on_event(event);
  ring_.Add(event);
  if (!spec_.events_console && file_ == nullptr) return;
  std::string line = events::FormatEvent(*event);
  if (spec_.events_console) outputs_.show(line);
  if (file_ == nullptr) return;
  if (size_t lost = file_->TakeLoss(); lost > 0) {
    Write(std::nullopt, events::EventsLost{lost});
  }
  file_->Write(std::move(line));
}

void WriteRefusal(const JobSpec& spec, const Error& error, int exit_code) {
  WriteLastEvent(spec.events_file, spec.run_id, events::Refused{error.message, exit_code});
}

void WriteEndWithoutAgent(const JobRecord& job, const Goodbye& end, const std::string& why) {
  WriteLastEvent(job.events_file, job.run_id,
                 events::JobEnded{.exit_code = end.exit_code,
                                  .end_signal = end.end_signal,
                                  .why = end.end_signal != 0 ? StoppedBy(end.end_signal) : why,
                                  .restarts = job.attempt,
                                  .lasted = std::chrono::steady_clock::now() - job.job_began});
}

}  // namespace rankrun::agent
