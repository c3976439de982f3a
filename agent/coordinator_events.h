#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "agent/control_message.h"
#include "agent/coordinator_record.h"
#include "agent/nodes_spec.h"
#include "agent/restart_policy.h"

namespace rankrun::agent {

using PeerId = uint64_t;  // a connection

struct CoordinatorPolicy {
  int min_nodes = 1;
  int max_nodes = 1;
  RestartPolicy restart = {};
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{30'000};
  std::chrono::milliseconds node_timeout{10'000};
  std::chrono::milliseconds finish_timeout{3'600'000};
  std::chrono::milliseconds kill_bound{1'000};  // until a node that lost us has killed its workers
  // What a node may take to answer, beyond the time that it needs by its own settings.
  std::chrono::milliseconds answer_patience{60'000};
  LostNode on_lost_node = LostNode::kRestart;
  uint64_t own_node = 0;  // of the coordinator's host
};

// What followed a round that was stopped.
struct RoundOutcome {
  std::optional<int> rank = {};  // of the worker that was the cause
  std::string cause = {};
  bool restarts = false;
  bool is_free = false;     // and is not counted
  std::string reason = {};  // "at once", or why not
  int restart_number = 0;
  int exit_code = 0;  // if that was the end
};

enum class JobPhase {
  kGathering,  // no round is granted
  kPreparing,  // a round is proposed, its nodes make ready
  kRunning,    // it is granted
  kStopping,   // what runs of it is being ended
  kPausing,    // before the next one
  kFinishing,  // all workers have succeeded; each node is told so
  kOver,       // the verdict is told
};

struct PeerSaid {
  PeerId peer;
  MemberMessage message;
};
struct PeerLost {
  PeerId peer;
};
struct Tick {};  // the deadline has come, or any time
using CoordinatorEvent = std::variant<PeerSaid, PeerLost, Tick>;

struct Tell {
  PeerId peer;
  CoordinatorMessage message;
};
struct HangUp {  // after what was told before has been sent
  PeerId peer;
};
// Must outlive this process from now on, before what follows is told.
struct Keep {
  CoordinatorRecord record;
};
struct Retire {};  // all is told; nobody needs the coordinator any more
using CoordinatorAction = std::variant<Tell, HangUp, Keep, Retire>;

}  // namespace rankrun::agent
