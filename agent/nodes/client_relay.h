#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/relay.h"
#include "base/clock.h"
#include "base/net/socket_address.h"

namespace rankrun::agent {

// The coordinator's part in the admission of clients to the store: asks the nodes that have the
// address of a client whether it may use the store, and passes their verdict on to the store's
// node. A client that no node vouches for in time is refused. Pure: no clock, no I/O.
class ClientRelay {
 public:
  // Clients that one node asks about at a time; further ones are refused at once.
  static constexpr size_t kMaxClientsOfNode = 65'536;
  // Nodes that share an address. A client is refused if more have its own.
  static constexpr size_t kMaxNodesOfClient = 64;
  // Returns the time in which the nodes have to answer. A node that is not lost may be silent for
  // `node_timeout`.
  static Duration TimeoutFor(Duration node_timeout) {
    return std::max<Duration>(std::chrono::seconds(10), node_timeout);
  }

  explicit ClientRelay(Duration node_timeout) : timeout_(TimeoutFor(node_timeout)) {}

  struct Message {
    PeerId to;
    std::variant<WhoseClients, ClientVerdicts> message;
  };
  using Messages = std::vector<Message>;

  // A node has connected. Asks it again what it has not answered over an earlier connection.
  Messages Add(PeerId peer, uint64_t node, const std::string& name);
  // Replaces the addresses of a node at which other hosts may reach it. Asks it about
  // the clients whose node was not known. Ignored for a connection that Add does not know.
  Messages SetAddresses(PeerId peer, const std::vector<std::string>& addresses);
  // From now on, only this node may ask.
  void SetStore(PeerId peer);
  void Remove(PeerId peer);
  void KeepNodes(const std::function<bool(uint64_t node)>& is_in_job);

  Messages OnQuestion(PeerId from, const WhoseClients& question, TimePoint now);
  Messages OnVerdicts(PeerId from, const ClientVerdicts& answer);
  Messages OnTick(TimePoint now);

  // Time of the next OnTick; none while no question is open.
  std::optional<TimePoint> deadline() const;

 private:
  struct Node {
    std::string name;
    std::optional<PeerId> peer;  // empty: not connected
    bool has_told = false;       // its addresses
    std::set<AddressBytes> addresses;
  };
  struct Question {
    PeerId asker;
    StoreClient client;       // with the id of the asker
    std::set<uint64_t> open;  // nodes that have not answered; empty: no node with its address yet
    TimePoint deadline;
    ClientVerdict refusal = {};  // the best one so far
  };
  using ToNodes = std::map<PeerId, WhoseClients>;
  using ToAskers = std::map<PeerId, ClientVerdicts>;
  using Questions = std::map<uint64_t, Question>;

  void ForgetAddresses(uint64_t node);
  std::set<uint64_t> NodesAt(const std::string& address) const;
  void Ask(uint64_t number, const Question& question, uint64_t node, ToNodes& out) const;
  std::string ProblemOf(PeerId from, const std::set<uint64_t>& nodes) const;
  void Close(Questions::iterator question, ClientVerdict verdict, ToAskers& out);
  std::string NamesOf(const std::set<uint64_t>& nodes) const;

  const Duration timeout_;
  std::map<uint64_t, Node> nodes_;
  std::optional<uint64_t> store_;  // node
  std::map<AddressBytes, std::set<uint64_t>> nodes_at_;
  std::map<PeerId, uint64_t> node_of_peer_;
  Questions questions_;                // by number; in the order of their deadlines
  std::map<PeerId, size_t> asked_by_;  // number of questions
  uint64_t last_number_ = 0;
};

}  // namespace rankrun::agent
