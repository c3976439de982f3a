#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/job/decision.h"
#include "agent/job/job_record.h"
#include "agent/report/attempt_record.h"

// Events for programs that watch a job: one JSON object per line.
// docs/events.md describes each kind with its fields.
namespace rankrun::agent::events {

// The first event of a job.
struct JobStarted {
  std::string version;
  std::string node;
  pid_t guardian_pid;
  pid_t agent_pid;
  int workers;
  int max_restarts;
  std::vector<std::string> program;  // and its arguments
};

// The agent has died with all its descendants; its next incarnation continues.
struct AgentRestarted {
  pid_t agent_pid;
  int incarnation;                       // 1 for the first after a death
  std::optional<RestartsUsed> restarts;  // only in a job of one node
  std::string why;
};

// The job was refused; no other event follows.
struct Refused {
  std::string why;
  int exit_code;
};

struct AttemptStarted {
  uint16_t store_port;
};

struct WorkerStarted {
  int global_rank;
  int local_rank;
  pid_t pid;
};

// Also sent for a worker whose start failed.
struct WorkerEnded {
  WorkerRecord worker;
  std::optional<Duration> lasted;  // empty: never started
};

// The running workers were signalled to end.
struct StopBegun {
  std::string why;
};

// The workers that had not ended were killed.
struct Kill {
  std::string why;
};

// Processes that the workers left behind were signalled.
struct LeftBehind {
  int signal_number;
  std::vector<pid_t> pids;
};

// The job continues without a node.
struct NodeLost {
  std::string why;
};

// Another attempt follows, after `delay`.
struct Restart {
  int number;  // 1 for the first
  int of;
  std::chrono::milliseconds delay;
  bool is_free = false;  // it is not counted
  std::string why;
};

// A failed attempt with all that is known about it.
struct Report {
  AttemptRecord record;
  std::string text;  // as shown to the user
};

// The last event of a job.
struct JobEnded {
  int exit_code;
  int end_signal;  // signal by which rankrun ends; 0: none
  std::string why;
  int restarts;
  Duration lasted;
};

// Events that could not be written before this one.
struct EventsLost {
  size_t count;
};

using Payload = std::variant<JobStarted, AgentRestarted, Refused, AttemptStarted, WorkerStarted,
                             WorkerEnded, StopBegun, Kill, LeftBehind, NodeLost, NodeJoined,
                             NodeRefused, NodeDropped, NodeReplaced, RoundFormed, RoundStopping,
                             RestartDecided, VerdictGiven, Restart, Report, JobEnded, EventsLost>;

struct Event {
  std::chrono::system_clock::time_point time;
  std::string run_id;
  std::optional<int> attempt;  // empty: the event concerns the whole job
  Payload payload;
};

Payload PayloadOf(const Decision& decision);

// Returns the name of the kind, such as "worker_started".
std::string_view KindOf(const Payload& payload);

// Returns one line of JSON with its newline. It is valid UTF-8 even if the
// strings are not. Pure.
std::string FormatEvent(const Event& event);

// Returns a time as "2026-01-31T12:00:00.123456Z".
std::string FormatTime(std::chrono::system_clock::time_point time);

}  // namespace rankrun::agent::events
