#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/node_work.h"

namespace rankrun::agent {

// What the agents of a job say to each other: a member's agent to the
// coordinator and back. They carry no commands, paths or environment. The
// table of who says what when is in docs/control-plane.md.

// Opens a connection, the first one and each after a break: all of a member's state.
struct Hello {
  uint64_t node = 0;    // which rankrun: random, kept over incarnations
  int incarnation = 0;  // which of its agents
  std::string name;     // of the node, for messages
  int slots = 1;        // workers
  int min_nodes = 1;
  int max_nodes = 1;
  std::optional<int> node_rank = {};        // claimed
  std::optional<int> node_index = {};       // a scheduler's, for the order
  std::vector<std::string> addresses = {};  // where others may reach it, best first
  int round = 0;                            // of its work; 0: it had none
  int attempts = 0;                         // of the job, that it has seen begin
  Work work = Work::kNone;
  std::optional<Cause> failure = {};  // of its work
  bool operator==(const Hello&) const = default;
};

// The node is ready to start its workers: nothing of an earlier round runs.
struct Prepared {
  int round;
  uint16_t store_port;  // of the node that hosts the store; else 0
  bool operator==(const Prepared&) const = default;
};
// A worker has failed; its siblings are being stopped.
struct Failed {
  int round;
  Cause cause;
  bool operator==(const Failed&) const = default;
};
// All workers of the node have ended well.
struct Done {
  int round;
  bool operator==(const Done&) const = default;
};
// Nothing of the round is left on the node; before it hangs up for good, too.
struct Stopped {
  int round;
  bool operator==(const Stopped&) const = default;
};
// The node knows that the job has succeeded.
struct FinishSeen {
  int round;
  bool operator==(const FinishSeen&) const = default;
};
// The node is taken away; the job may go on without it.
struct Leave {
  std::string why;
  bool operator==(const Leave&) const = default;
};
// Somebody at this node wants the job to end.
struct Close {
  Cause cause;
  bool operator==(const Close&) const = default;
};
// What a node knows of a failed attempt (job_report.h).
struct Report {
  int attempt;
  std::string record;
  bool operator==(const Report&) const = default;
};
// A sign of life; the answer has the same number.
struct Beat {
  uint64_t number;
  bool operator==(const Beat&) const = default;
};

// The node waits for a round, or is a spare.
struct Waiting {
  std::string text;  // the roll call; empty: nothing to show yet
  bool operator==(const Waiting&) const = default;
};
// The node may not take part.
struct Refusal {
  std::string text;
  bool operator==(const Refusal&) const = default;
};
// Make ready for this round; start nothing.
struct Prepare {
  int round = 0;
  int attempt = 0;  // RESTART_COUNT
  int node_rank = 0;
  int node_count = 0;
  int first_rank = 0;  // global rank of the node's first worker
  int world_size = 0;
  int max_restarts = 0;
  std::string record = {};  // digest of the whole round, the same on all nodes
  bool operator==(const Prepare&) const = default;
};
// All are ready: start.
struct Go {
  int round = 0;
  std::vector<std::string> store_addresses = {};  // candidates, best first
  uint16_t store_port = 0;
  bool operator==(const Go&) const = default;
};
// Stop what runs of this round.
struct Stop {
  int round;
  std::string why;
  bool is_failure;  // then `why` is the culprit's end
  bool operator==(const Stop&) const = default;
};
// The job has succeeded unless somebody has not heard of it yet.
struct Finish {
  int round;
  bool operator==(const Finish&) const = default;
};
// What all nodes know of a failed attempt, for all to show.
struct JobReport {
  int attempt;
  std::string record;
  bool operator==(const JobReport&) const = default;
};
// How the job ended; for all the same.
struct Verdict {
  int exit_code;
  std::string text;  // empty: there is nothing to add
  bool operator==(const Verdict&) const = default;
};

using MemberMessage =
    std::variant<Hello, Prepared, Failed, Done, Stopped, FinishSeen, Leave, Close, Beat, Report>;
using CoordinatorMessage =
    std::variant<Waiting, Refusal, Prepare, Go, Stop, Finish, Verdict, Beat, JobReport>;

}  // namespace rankrun::agent
