#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/tcp/connect.h"

namespace rankrun::comm::tcp {

// Authenticated sockets of this rank.
// Thread: one at a time.
class SocketTable {
 public:
  SocketTable(int ranks, int own_rank, size_t data_streams);

  // Stores the socket of a stream, by its number in the handshake. It replaces
  // an earlier one: a peer connects again only if it lost the connection before
  // it knew that it was accepted.
  void Put(int peer, uint32_t stream, Fd socket);

  bool is_complete() const { return missing_ == 0; }
  // Returns the group ranks to which a connection is missing, ascending.
  std::vector<int> Incomplete() const;

  struct Loss {
    int peer;
    std::string why;
  };
  // Returns the first peer that has closed a connection or is lost.
  std::optional<Loss> FirstLoss() const;

  std::vector<PeerSockets> Take() { return std::move(sockets_); }

 private:
  const int own_rank_;
  std::vector<PeerSockets> sockets_;  // by group rank
  size_t missing_;                    // number of sockets
};

// Checks a table for losses at times. It reports a loss at the second check
// only; by then the agent has reported a death that caused it, and the peer the
// reason for which it left.
class LossWatch {
 public:
  // `table` must outlive the watch.
  explicit LossWatch(const SocketTable& table) : table_(table) {}

  std::optional<SocketTable::Loss> Check(TimePoint now);

 private:
  const SocketTable& table_;
  TimePoint next_check_{};
  std::optional<SocketTable::Loss> seen_ = {};  // at the last check
};

}  // namespace rankrun::comm::tcp
