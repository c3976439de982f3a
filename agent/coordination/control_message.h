#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/coordination/health_message.h"
#include "agent/coordination/hello.h"
#include "agent/coordination/relay.h"

namespace rankrun::agent {

// Messages between the members of a job and its coordinator. They carry no
// commands, paths or environment. docs/control-plane.md lists when each is
// sent.

// The node is ready to start its workers; nothing of an earlier round runs
// there.
struct Prepared {
  int round;
  uint16_t store_port;                                  // if this node hosts the store; else 0
  std::vector<std::string> own_addresses = {};          // of this host; empty: unknown
  std::optional<std::string> coordinator_address = {};  // to which this node connected, numeric
  bool operator==(const Prepared&) const = default;
};
// A worker has failed; the node is stopping the others.
struct Failed {
  int round;
  Cause cause;
  bool operator==(const Failed&) const = default;
};
// All workers of the node have succeeded.
struct Done {
  int round;
  bool operator==(const Done&) const = default;
};
// Nothing of the round is left on the node. A leaving member sends it last.
struct Stopped {
  int round;
  bool operator==(const Stopped&) const = default;
};
// A process of the round survives SIGKILL.
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
// The node leaves; the job may continue without it.
struct Leave {
  std::string why;
  bool operator==(const Leave&) const = default;
};
// The node requests the end of the job.
struct Close {
  Cause cause;
  bool operator==(const Close&) const = default;
};
// One node's part of the report on a failed attempt, encoded by job_report.h.
struct Report {
  int attempt;
  std::string record;
  bool operator==(const Report&) const = default;
};
// Heartbeat. The answer repeats the number and has no other field.
struct Beat {
  uint64_t number;
  // Local ranks of the workers that still run; sent only if some have ended
  // since the last time.
  std::optional<std::vector<int>> unfinished = {};
  bool operator==(const Beat&) const = default;
};

// The node waits for a round, or is a spare.
struct Waiting {
  std::string text;  // roll call for the user; empty: nothing to show yet
  bool operator==(const Waiting&) const = default;
};
// The node may not take part.
struct Refusal {
  std::string text;
  bool operator==(const Refusal&) const = default;
};
// First phase of a round: get ready, but start nothing.
struct Prepare {
  int round = 0;
  int attempt = 0;  // TORCHELASTIC_RESTART_COUNT
  int node_rank = 0;
  int node_count = 0;
  int first_rank = 0;  // global rank of the node's first worker
  int world_size = 0;
  int max_restarts = 0;
  std::string record = {};  // digest of the whole round; the same on all nodes
  bool operator==(const Prepare&) const = default;
};
// Second phase of a round: all nodes are ready, so start the workers.
struct StartRound {
  int round = 0;
  std::vector<std::string> store_addresses = {};  // candidates, best first
  uint16_t store_port = 0;
  // For the store's host only: addresses that may connect; empty: all.
  std::vector<std::string> store_allowlist = {};
  bool operator==(const StartRound&) const = default;
};
// Stop all workers of this round.
struct Stop {
  int round;
  std::string why;
  bool is_failure;  // then `why` describes the worker that failed
  bool operator==(const Stop&) const = default;
};
// First phase of success: all workers of all nodes have succeeded.
struct Finish {
  int round;
  bool operator==(const Finish&) const = default;
};
// The job continues without a node; shown to the user.
struct NodeLost {
  std::string text;
  bool operator==(const NodeLost&) const = default;
};
// The report on a failed attempt, merged from all nodes; every node shows it.
struct JobReport {
  int attempt;
  std::string record;
  bool operator==(const JobReport&) const = default;
};
// Outcome of the job; the same for all nodes.
struct Verdict {
  int exit_code;
  std::string text;             // empty: nothing to add
  bool report_follows = false;  // a JobReport is to come, on the last attempt
  bool operator==(const Verdict&) const = default;
};

using MemberMessage =
    std::variant<Hello, Prepared, Failed, Done, Stopped, FinishSeen, Leave, Close, Beat, Report,
                 Stuck, NodeHealth, NodeStacks, Relay, WhoseClients, ClientVerdicts>;
using CoordinatorMessage =
    std::variant<Waiting, Refusal, Prepare, StartRound, Stop, Finish, Verdict, Beat, JobReport,
                 NodeLost, HealthWanted, HangNotice, StacksWanted, HangFound, Relay, WhoseClients,
                 ClientVerdicts>;

}  // namespace rankrun::agent
