#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/job/nodes_spec.h"
#include "base/clock.h"

namespace rankrun::agent {

// A connection to the liveness port of a node, to be tried now.
struct LivenessDial {
  uint64_t number;
  uint64_t node;
  Endpoint target;
};

enum class LivenessAnswer {
  kConnected,
  kRefused,
  kNone,  // no answer in time, no route, or this host cannot connect
};

// A node whose guardian and agent are both gone.
struct NodeGone {
  uint64_t node;
  uint16_t port;  // refuses connections
};

constexpr int kSilenceChecksPerTimeout = 10;  // in a node timeout

// Decides when to dial the liveness ports of nodes, and finds those that are gone. A firewall
// may refuse connections, too. So a refusal counts only after an earlier dial of that port
// was successful, and only if the dial began while the node was suspect: with a broken
// connection, or silent. Two in a row are proof. A node whose first dial is refused is forgotten
// until its next hello; one without an answer is repeated. Pure: no clock, no I/O.
class LivenessWatch {
 public:
  explicit LivenessWatch(Duration node_timeout) : node_timeout_(node_timeout) {}

  // The node has connected, and can be dialled at `target`.
  void OnHello(uint64_t node, const Endpoint& target, TimePoint now);
  void OnMessage(uint64_t node, TimePoint now);
  void OnBroken(uint64_t node, TimePoint now);
  void Forget(uint64_t node);

  // Returns the dials that are due. OnAnswer must follow for each.
  std::vector<LivenessDial> Due(TimePoint now);
  // Returns the node that this answer proves to be gone; it is then forgotten.
  std::optional<NodeGone> OnAnswer(uint64_t dial, LivenessAnswer answer, TimePoint now);
  // Time of the next Due.
  std::optional<TimePoint> deadline() const;

 private:
  struct Node {
    Endpoint target;
    TimePoint last_heard;
    bool is_proven = false;                   // a dial of `target` was successful
    bool is_suspect = false;                  // since the node was last heard
    std::optional<TimePoint> next_dial = {};  // in plan_
    std::optional<uint64_t> dial = {};        // without an answer
    bool dial_counts = false;                 // it began while the node was suspect
    int refusals = 0;                         // that count, in a row
    Duration pause{};                         // before the next dial
    Duration trial_pause{};                   // after the latest trial
  };

  void Suspect(uint64_t id, Node& node, TimePoint now);
  void Trust(uint64_t id, Node& node, TimePoint now);
  void CheckSilence(TimePoint now);
  void EndTrial(uint64_t id, Node& node, LivenessAnswer answer, TimePoint now);
  void Plan(uint64_t id, Node& node, std::optional<TimePoint> at);
  void PlanAfterPause(uint64_t id, Node& node, TimePoint now);

  const Duration node_timeout_;
  std::map<uint64_t, Node> nodes_;
  std::set<std::pair<TimePoint, uint64_t>> plan_;  // the next dials
  std::map<uint64_t, uint64_t> dialled_;           // the nodes of the dials without an answer
  uint64_t last_dial_ = 0;
  TimePoint next_silence_check_{};
};

}  // namespace rankrun::agent
