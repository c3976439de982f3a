#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_record.h"
#include "agent/coordination/liveness_watch.h"
#include "agent/job/decision.h"
#include "agent/job/nodes_spec.h"
#include "agent/lifecycle/restart_policy.h"

namespace rankrun::agent {

using PeerId = uint64_t;  // identifies a connection

struct CoordinatorPolicy {
  int min_nodes = 1;
  int max_nodes = 1;
  RestartPolicy restart = {};
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{30'000};
  std::chrono::milliseconds node_timeout{10'000};
  std::chrono::milliseconds finish_timeout{3'600'000};
  std::chrono::milliseconds kill_bound{1'000};  // time to kill the workers of a lost node
  // Time in which the kernel kills the workers of a node whose agent and guardian are gone.
  std::chrono::milliseconds gone_bound{200};
  // Longest time that the stop of a node may take, whatever its hello claims.
  std::chrono::milliseconds max_stop{std::chrono::hours(1)};
  // Time for the answer to Prepare. For Stop, it is added to the stop_ms of the
  // node's hello.
  std::chrono::milliseconds answer_timeout{60'000};
  LostNode on_lost_node = LostNode::kRestart;
  int replace_after = 2;  // failures in a row on one node, which then becomes a spare; 0: never
  uint64_t own_node = 0;  // node id of the coordinator's host
  bool keeps_own_node = false;  // it must be in each round, because the store's port is there
};

enum class JobPhase {
  kGathering,  // nodes join; no round is proposed
  kPreparing,  // a round is proposed; its nodes get ready
  kRunning,    // all nodes were ready; the workers run
  kStopping,   // the workers are being stopped
  kPausing,    // the pause before a restart
  kFinishing,  // all workers have succeeded; each node must acknowledge it
  kOver,       // the verdict is sent
};

struct MessageFromPeer {
  PeerId peer;
  MemberMessage message;
};
struct PeerLost {
  PeerId peer;
};
// All other nodes were refused for their secret, so none is to be expected.
struct OthersRefused {
  std::string why;
};
// The merged report on an attempt names a worker of this node as the cause.
struct CauseFound {
  int attempt;
  std::string node;  // name
};
// The samples of the workers show that ranks which run wait for others that have ended.
struct AwaitedEndSeen {
  std::string text;
};
struct EndPause {};  // the user does not wait for the pause before a restart
struct Tick {};      // at the deadline or at any other time
using CoordinatorEvent = std::variant<MessageFromPeer, PeerLost, NodeGone, OthersRefused,
                                      CauseFound, AwaitedEndSeen, EndPause, Tick>;

struct SendMessage {
  PeerId peer;
  CoordinatorMessage message;
};
struct HangUp {  // once all earlier messages are sent
  PeerId peer;
};
// Store the record, so that it outlives this process, before any later action.
struct PersistRecord {
  CoordinatorRecord record;
};
struct Retire {};  // no node needs the coordinator any more
// An event for people and programs. No later action depends on it.
struct Announcement {
  std::optional<int> attempt;  // empty: the event concerns the whole job
  events::Decision decision;
};
using CoordinatorAction = std::variant<SendMessage, HangUp, PersistRecord, Retire, Announcement>;

}  // namespace rankrun::agent
