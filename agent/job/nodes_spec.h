#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// Address at which the nodes meet.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// Reaction to the loss of a node while the job runs.
enum class LostNode { kRestart, kStop };

// Settings that all nodes of a job share, and this node's own part.
struct NodesSpec {
  int min = 1;
  int max = 1;
  std::vector<Endpoint> endpoints;  // not empty; all lead to the coordinator, the first directly
  std::optional<bool> is_host;    // this node hosts the coordinator; empty: decided by the endpoint
  bool shares_port = false;       // coordinator and store share a port (static rendezvous)
  std::optional<int> node_rank;   // set by the user: claimed
  std::optional<int> node_index;  // set by the scheduler: only orders the nodes
  std::string node_name;          // for messages
  std::string local_addr;  // set by the user: this node's address for others; empty: by the route
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{30'000};
  std::chrono::milliseconds node_timeout{10'000};
  std::chrono::milliseconds finish_timeout{3'600'000};
  LostNode on_lost_node = LostNode::kRestart;
  int replace_after = 2;      // failures in a row on one node, which then becomes a spare; 0: never
  std::string secret;         // bytes; empty: none
  bool store_strict = false;  // refuse nodes whose workers' addresses are not known for sure
  std::string munge_credential;  // hands `secret` over to the other nodes; empty: none
  std::string secret_origin;     // for messages: a path or variable; empty: none
  bool secret_is_own = false;    // `secret_origin` is the file of the user's own secret
  std::string secret_advice;     // for messages: how containers share a secret; empty: not in one
  std::string endpoint_origin;   // for messages: the flag, or another source
};

}  // namespace rankrun::agent
