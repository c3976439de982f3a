#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/attempt_record.h"
#include "agent/job_record.h"

// What rankrun decided or saw, as it is told to programs: one JSON object per
// line. docs/events.md has each kind with its fields.
namespace rankrun::agent::events {

// The first of a job.
struct JobStarted {
  std::string version;
  std::string node;
  pid_t guardian_pid;
  pid_t agent_pid;
  int workers;
  int max_restarts;
  std::vector<std::string> program;  // and its arguments
};

// The agent has died with all that was below it, and the next one goes on.
struct AgentRestarted {
  pid_t agent_pid;
  int incarnation;                       // 1 for the first after a death
  std::optional<RestartsUsed> restarts;  // of a job of this node alone
  std::string why;
};

// Nothing was started, and no other event follows.
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

// Also of one that could not be started.
struct WorkerEnded {
  WorkerRecord worker;
  std::optional<Duration> lasted;  // nothing: it was never started
};

// The workers that live were told to end.
struct StopBegun {
  std::string why;
};

// Those that had not ended were killed.
struct Kill {
  std::string why;
};

// Processes that the workers left behind got a signal.
struct LeftBehind {
  int signal_number;
  std::vector<pid_t> pids;
};

// The job goes on without a node.
struct NodeLost {
  std::string why;
};

// Another attempt follows, after `delay`.
struct Restart {
  int number;  // 1 for the first
  int of;
  std::chrono::milliseconds delay;
  std::string why;
};

// A failed attempt with all that is known about it.
struct Report {
  AttemptRecord record;
  std::string text;  // as a person gets it
};

// The last of a job.
struct JobEnded {
  int exit_code;
  int end_signal;  // rankrun ends by it, if not 0
  std::string why;
  int restarts;
  Duration lasted;
};

// Lines that could not be written where this one is.
struct EventsLost {
  size_t count;
};

using Happening =
    std::variant<JobStarted, AgentRestarted, Refused, AttemptStarted, WorkerStarted, WorkerEnded,
                 StopBegun, Kill, LeftBehind, NodeLost, Restart, Report, JobEnded, EventsLost>;

struct Event {
  std::chrono::system_clock::time_point time;
  std::string run_id;
  std::optional<int> attempt;  // nothing: of the whole job
  Happening what;
};

// "worker_started"
std::string_view KindOf(const Happening& what);

// One line of JSON, valid UTF-8 whatever the strings hold, with its newline. Pure.
std::string FormatEvent(const Event& event);

// "2026-01-31T12:00:00.123456Z"
std::string FormatTime(std::chrono::system_clock::time_point time);

}  // namespace rankrun::agent::events
