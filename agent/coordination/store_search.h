#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/job/nodes_spec.h"
#include "base/clock.h"
#include "base/net/socket_address.h"

namespace rankrun::agent {

// Connect to the store; OnConnected or OnFailed follows.
struct DialStore {
  Endpoint store;
};
// Call Next after the pause.
struct DialLater {
  Duration pause;
};
// Let only `clients` connect to this node's store; empty: all.
struct AdmitClients {
  std::vector<std::string> clients;
};
// Start the workers with this store.
struct UseStore {
  Endpoint store;
};
struct StoreUnreachable {
  std::string why;
  bool is_worth_a_restart;  // an earlier attempt has reached a store
};
// The round was stopped first, so no worker starts.
struct SearchCancelled {};
using StoreAction =
    std::variant<DialStore, DialLater, AdmitClients, UseStore, StoreUnreachable, SearchCancelled>;

// The state of the node at an event.
struct SearchView {
  bool is_running;                             // the round has not been stopped
  std::optional<SocketAddress> local_address;  // of the connection to the coordinator
  TimePoint now;
};

// Finds an address of a round's store that this node can reach. Dials the candidates in their
// order, and all again until the node timeout, because a look-up may fail once. Pure: no clock,
// no I/O.
class StoreSearch {
 public:
  explicit StoreSearch(Duration node_timeout) : node_timeout_(node_timeout) {}

  // The first node of the round has the store itself. It dials, too, because the first address may
  // be one that others have for this host and that does not lead back here.
  std::vector<StoreAction> Begin(const Prepare& round, const StartRound& start,
                                 const SearchView& view);
  std::vector<StoreAction> Next(const SearchView& view);
  // These two never return DialStore, so they may be called by the dial that has ended.
  std::vector<StoreAction> OnConnected(const SearchView& view);
  std::vector<StoreAction> OnFailed(const std::string& why);
  // The round is being stopped: the dial in progress is not waited for.
  std::vector<StoreAction> OnStop() const;

 private:
  std::vector<StoreAction> Repeat(TimePoint now);
  void AddFailure(const std::string& why);
  std::vector<StoreAction> Cancel();

  const Duration node_timeout_;
  StartRound start_;
  bool is_own_ = false;  // the store is on this host
  bool is_searching_ = false;
  bool is_first_attempt_ = true;
  bool has_dialled_ = false;  // at least one dial has ended
  size_t next_ = 0;           // index of the candidate
  TimePoint until_{};
  std::string failures_;  // since the first candidate
};

}  // namespace rankrun::agent
