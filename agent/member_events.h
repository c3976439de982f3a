#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "agent/control_message.h"

namespace rankrun::agent {

struct MemberPolicy {
  std::chrono::milliseconds join_timeout{600'000};  // to find the coordinator
  std::chrono::milliseconds node_timeout{10'000};   // without it
  // To be let in where another job is, or one with another secret: an old job
  // may be about to leave the port.
  std::chrono::milliseconds refusal_timeout{5'000};
};

enum class MemberPhase {
  kJoining,    // has never heard of the coordinator
  kWaiting,    // nothing runs; not in a round, or it is over here
  kPreparing,  // told of a round, not ready yet
  kPrepared,
  kRunning,
  kStopping,  // something runs and was told to end
  kDone,      // all workers have succeeded
  kFinished,  // and the job has
  kOver,
};

struct LinkUp {};  // the hello has been sent: hello() as it was then
struct LinkDown {
  std::string why;
  bool is_refused = false;  // a rankrun is there, and does not let this node in
};
struct CoordinatorSaid {
  CoordinatorMessage message;
};
// The answer to MakeReady.
struct Ready {
  int round;
  uint16_t store_port;
  std::vector<std::string> own_addresses = {};
};
// This node cannot do its part of the round, or a worker has failed.
struct PartFailed {
  Cause cause;
};
// Nothing of the round is left on this node.
struct WorkersOver {
  bool have_succeeded;
};
// A worker has ended, and others have not.
struct WorkersLeft {
  std::vector<int> local_ranks;
};
// SIGKILL was long ago, and a process still is.
struct WorkersStuck {
  StuckProcess process;
};
// Somebody wants this node to leave the job, or the job to end; the workers
// have been told so.
struct LeaveWanted {
  std::string why;
};
struct CloseWanted {
  Cause cause;
};
struct MemberTick {};
using MemberEvent = std::variant<LinkUp, LinkDown, CoordinatorSaid, Ready, PartFailed, WorkersOver,
                                 WorkersLeft, WorkersStuck, LeaveWanted, CloseWanted, MemberTick>;

struct Send {
  MemberMessage message;
};
// Open the store, if it is here; nothing of an earlier round is left.
struct MakeReady {
  Prepare round;
};
struct StartWorkers {
  Go go;
};
// `at_once`: without grace. WorkersOver follows, also if none run.
struct StopWorkers {
  std::string why;
  bool is_failure;
  bool at_once;
};
struct ShowRoll {
  std::string text;
};
// The job is over for this node; nothing of it runs here.
struct EndNode {
  int exit_code;
  std::string text;  // empty: there is nothing to add
};
using MemberAction = std::variant<Send, MakeReady, StartWorkers, StopWorkers, ShowRoll, EndNode>;

}  // namespace rankrun::agent
