#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/hello.h"

namespace rankrun::agent {

// What the agents of a job say to each other: a member's agent to the
// coordinator and back. They carry no commands, paths or environment. The
// table of who says what when is in docs/control-plane.md.

// The node is ready to start its workers: nothing of an earlier round runs.
struct Prepared {
  int round;
  uint16_t store_port;                          // of the node that hosts the store; else 0
  std::vector<std::string> own_addresses = {};  // its workers come by one; empty: not known
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
// What was told to end is killed, but does not die.
struct Stuck {
  int round;
  StuckProcess process;
  bool operator==(const Stuck&) const = default;
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
// A sign of life; the answer has the same number, and nothing else.
struct Beat {
  uint64_t number;
  // Local ranks of the workers that still run, when some have ended since it was last said.
  std::optional<std::vector<int>> unfinished = {};
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
  // To the node that hosts it: from where it is to take connections; empty: from everywhere.
  std::vector<std::string> store_clients = {};
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
// The job goes on without a node; for people.
struct NodeLost {
  std::string text;
  bool operator==(const NodeLost&) const = default;
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
  std::string text;             // empty: there is nothing to add
  bool report_follows = false;  // a JobReport, on whatever attempt
  bool operator==(const Verdict&) const = default;
};

using MemberMessage = std::variant<Hello, Prepared, Failed, Done, Stopped, FinishSeen, Leave, Close,
                                   Beat, Report, Stuck>;
using CoordinatorMessage =
    std::variant<Waiting, Refusal, Prepare, Go, Stop, Finish, Verdict, Beat, JobReport, NodeLost>;

}  // namespace rankrun::agent
