#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/coordinator_node.h"
#include "base/clock.h"

namespace rankrun::agent {

// The nodes that belong to the job: those that are connected, or that were and may reconnect.
// Decides which node may take part and to which one a connection belongs. Pure.
class Roster {
 public:
  using Node = CoordinatorNode;
  using Nodes = std::map<uint64_t, Node>;  // by node id

  Roster(int min_nodes, int max_nodes) : min_nodes_(min_nodes), max_nodes_(max_nodes) {}

  const Nodes& nodes() const { return nodes_; }
  Nodes& nodes() { return nodes_; }
  Node& at(uint64_t id) { return nodes_.at(id); }
  bool Contains(uint64_t id) const { return nodes_.contains(id); }
  // Returns null for a connection that belongs to no node.
  Node* NodeOf(PeerId peer);

  // Returns nothing for a node that may take part. `known_round`: the highest of the job.
  std::string ReasonToRefuse(PeerId peer, const Hello& hello, int known_round) const;

  // Adds a node of the predecessor's record, which has yet to connect.
  Node& Expect(const Hello& hello, TimePoint now);
  struct Arrival {
    Node& node;
    bool is_new;                     // its first hello
    bool is_next_incarnation;        // its agent has ended
    std::optional<PeerId> replaced;  // its earlier connection
  };
  // Records the hello of a node that may take part.
  Arrival Register(PeerId peer, const Hello& hello, TimePoint now);
  // Forgets a connection. Returns its node, or null.
  Node* Disconnect(PeerId peer);

  // The node stays out until a later incarnation of its agent says hello.
  void GiveUp(const Node& node) { given_up_[node.hello.node] = node.hello.incarnation; }
  Node Remove(uint64_t id);
  // Removes the nodes that left and have no connection. Returns their ids.
  std::vector<uint64_t> RemoveDeparted();

  // Returns the nodes not heard for `timeout`. A connected node `here` is never silent.
  std::vector<uint64_t> Silent(TimePoint now, Duration timeout, uint64_t here) const;
  // Returns the nodes that have not answered in time.
  std::vector<uint64_t> Late(TimePoint now) const;
  uint64_t IdOf(const std::string& name) const;  // 0: no node, or several, have this name
  bool HasFewerThanMin() const;                  // without the nodes that leave
  bool HasMoreThanMax() const;                   // of the nodes that could form a round now
  // Returns "1 of 2 nodes are here after 10.0 s (n1)".
  std::string RollCall(Duration waited) const;

 private:
  const int min_nodes_;
  const int max_nodes_;
  Nodes nodes_;
  std::map<PeerId, uint64_t> node_of_peer_;
  std::map<uint64_t, int> given_up_;  // node id to the last incarnation that is refused
  uint64_t arrivals_ = 0;
};

}  // namespace rankrun::agent
