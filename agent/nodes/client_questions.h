#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "agent/coordination/relay.h"
#include "base/clock.h"

namespace rankrun::agent {

// The part of the store's node in the admission of clients of other nodes: which questions are to
// be sent, and which clients have waited too long. Pure: no clock, no I/O.
class ClientQuestions {
 public:
  // `node_timeout` is that of ClientRelay, so that the coordinator answers sooner, unless it is
  // lost.
  explicit ClientQuestions(Duration node_timeout);

  void Add(StoreClient client, TimePoint now);
  // All that is not answered has to be sent over the new connection to the coordinator.
  void OnLinkUp();
  // Returns the questions that have not been sent over this connection yet.
  std::vector<WhoseClients> Take();
  // Returns the verdicts on clients that wait.
  std::vector<ClientVerdict> OnVerdicts(const ClientVerdicts& answer);
  // Returns verdicts on the clients that have waited too long.
  std::vector<ClientVerdict> OnTick(TimePoint now);

  // Time of the next OnTick; none while no client waits.
  std::optional<TimePoint> deadline() const;

 private:
  struct Waiting {
    StoreClient client;
    TimePoint deadline;
  };

  const Duration patience_;
  std::map<uint64_t, Waiting> waiting_;  // by id; in the order of their deadlines
  std::deque<uint64_t> unsent_;
};

}  // namespace rankrun::agent
