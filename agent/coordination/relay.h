#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::agent {

// Message about the inspection of a job (`rankctl`), between a member and the coordinator in both
// directions. It changes nothing in the job's course by itself.
enum class RelayKind {
  kRequest,  // to the coordinator: for all other nodes; from it: for this node
  kAnswer,   // to a request
  kOver,     // from the coordinator: all nodes have answered, or time is over
};

struct Relay {
  static constexpr size_t kMaxBytes = 64 * 1024;  // of `content`

  RelayKind kind = RelayKind::kRequest;
  uint64_t number = 0;                    // of the request; each sender counts its own
  std::string content = {};               // JSON that agent/inspect reads
  uint32_t room = 0;                      // kRequest from the coordinator: bytes of the answer
  std::optional<uint32_t> limit_ms = {};  // kRequest: for all answers; empty: a second
  // kRequest: nodes that may have a long answer; empty: all.
  std::optional<uint32_t> long_answers = {};
  std::string node = {};                  // kAnswer from the coordinator: name of the node
  std::vector<std::string> missing = {};  // kOver: nodes that have not answered
  std::optional<bool> is_refused = {};    // kOver: no node was asked; empty: false
  bool operator==(const Relay&) const = default;
};

// A connection of the store whose client is on another node.
struct StoreClient {
  uint64_t id = 0;           // of the question; each sender counts its own
  std::string address = {};  // of the client, numeric
  uint16_t port = 0;
  std::string store_address = {};  // at which the client has arrived, numeric
  uint16_t store_port = 0;
  bool operator==(const StoreClient&) const = default;
};

// May these clients use the store? To the coordinator: of all nodes; from it: of this node.
struct WhoseClients {
  static constexpr size_t kMaxClients = 1024;

  std::vector<StoreClient> clients;
  bool operator==(const WhoseClients&) const = default;
};

struct ClientVerdict {
  uint64_t id = 0;          // that of the StoreClient
  std::string why = {};     // it may not use the store; empty: it may
  bool is_of_user = false;  // its user is the reason
  bool operator==(const ClientVerdict&) const = default;
};

// Answers WhoseClients.
struct ClientVerdicts {
  std::vector<ClientVerdict> verdicts;
  bool operator==(const ClientVerdicts&) const = default;
};

}  // namespace rankrun::agent
