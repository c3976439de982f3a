#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// Where nodes meet.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

// What is done about a node that is lost while the job runs.
enum class LostNode { kRestart, kStop };

// What the nodes of a job agree on, and this node's part.
struct NodesSpec {
  int min = 1;
  int max = 1;
  std::vector<Endpoint> endpoints;  // not empty; ways to the first: the coordinator
  std::optional<bool> is_host;      // this node has it; nothing: the endpoint tells
  bool shares_port = false;         // the coordinator's port is the store's (static rendezvous)
  std::optional<int> node_rank;     // typed: claimed
  std::optional<int> node_index;    // the scheduler's: for the order only
  std::string node_name;            // for messages
  std::string local_addr;           // typed: where others reach this node; empty: by the route
  std::chrono::milliseconds join_timeout{600'000};
  std::chrono::milliseconds last_call{30'000};
  std::chrono::milliseconds node_timeout{10'000};
  std::chrono::milliseconds finish_timeout{3'600'000};
  LostNode on_lost_node = LostNode::kRestart;
  std::string secret;           // bytes; empty: there is none
  std::string endpoint_origin;  // what to blame: the flag, or another source
};

}  // namespace rankrun::agent
