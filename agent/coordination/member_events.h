#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "agent/coordination/control_message.h"

namespace rankrun::agent {

struct MemberPolicy {
  std::chrono::milliseconds join_timeout{600'000};  // for finding the coordinator
  std::chrono::milliseconds node_timeout{10'000};   // without an answer from it
  // Longest time of refusals because of another job or another secret. Not 0,
  // because an old job may be about to release the port.
  std::chrono::milliseconds refusal_timeout{5'000};
};

enum class MemberPhase {
  kJoining,    // no message of the coordinator yet
  kWaiting,    // in no round, or the round is over here; nothing runs
  kPreparing,  // a round is proposed; this node is not ready yet
  kPrepared,
  kRunning,
  kStopping,  // workers run, but are being stopped
  kDone,      // all workers have succeeded
  kFinished,  // the job has succeeded
  kOver,
};

struct LinkUp {};  // hello() was sent as its first message
struct LinkDown {
  std::string why;
  bool is_refused = false;  // a rankrun answered, but refused this node
};
struct MessageFromCoordinator {
  CoordinatorMessage message;
};
// The coordinator's message is of another version, or damaged.
struct UnreadableMessage {
  std::string why;
};
// Answers MakeReady.
struct Ready {
  int round;
  uint16_t store_port;
  std::vector<std::string> own_addresses = {};
  std::optional<std::string> coordinator_address = {};
};
// A worker has failed, or this node cannot do its part of the round.
struct PartFailed {
  Cause cause;
};
// Nothing of the round is left on this node.
struct WorkersOver {
  bool have_succeeded;
};
// A worker has ended; `local_ranks` still run.
struct WorkersLeft {
  std::vector<int> local_ranks;
};
// A process still exists long after SIGKILL.
struct WorkersStuck {
  StuckProcess process;
};
// A signal or a time limit requests that this node leaves the job, or that the
// job ends. The workers are already being stopped.
struct LeaveWanted {
  std::string why;
};
struct CloseWanted {
  Cause cause;
};
struct MemberTick {};
using MemberEvent =
    std::variant<LinkUp, LinkDown, MessageFromCoordinator, UnreadableMessage, Ready, PartFailed,
                 WorkersOver, WorkersLeft, WorkersStuck, LeaveWanted, CloseWanted, MemberTick>;

struct Send {
  MemberMessage message;
};
// Open the store if this node hosts it. Nothing of an earlier round is left.
struct MakeReady {
  Prepare round;
};
struct StartWorkers {
  StartRound start_round;
};
// `at_once`: without grace. WorkersOver follows, even if no worker runs.
struct StopWorkers {
  std::string why;
  bool is_failure;
  bool at_once;
};
// A worker has failed elsewhere after all workers of this node had succeeded, which may be
// why: report their ends.
struct ReportSuccess {
  std::string why;  // the failure
};
struct ShowRoll {
  std::string text;
};
// The job is over for this node; nothing of it runs here.
struct EndNode {
  int exit_code;
  std::string text;  // empty: nothing to add
};
using MemberAction =
    std::variant<Send, MakeReady, StartWorkers, StopWorkers, ReportSuccess, ShowRoll, EndNode>;

}  // namespace rankrun::agent
