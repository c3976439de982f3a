#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "comm/tcp/handshake_socket.h"
#include "comm/tcp/socket.h"
#include "comm/tcp/socket_table.h"

namespace rankrun::comm::tcp {

// Connects to lower ranks. It tries again when a connection is refused or
// reset, until the caller stops.
// Thread: one at a time.
class Dialer {
 public:
  struct Target {
    StreamId id;
    SocketAddress address;
    std::string peer_name;  // for texts
    TimePoint not_before = {};
  };

  // `keys` and `table` must outlive the object. It stores authenticated sockets
  // in `table`.
  Dialer(const KeyRing& keys, const DescriptorNeed& need, SocketTable& table)
      : keys_(keys), need_(need), table_(table) {}

  // Targets are connected in the order of Add, a limited number at a time.
  void Add(Target target) { waiting_.push_back(std::move(target)); }

  // Starts connections for which it is time.
  // Errors: kExhausted, kSystem, if another attempt is useless.
  Result<void> Start(TimePoint now);

  // Appends the descriptors and events to poll for.
  void AddPollEntries(std::vector<pollfd>& entries) const;

  // Returns when to call Start next, even without an event.
  TimePoint NextDeadline() const;

  // Handles the events of the entries that AddPollEntries has appended.
  // Errors: as Start.
  Result<void> Advance(std::span<const pollfd> entries, TimePoint now);

  // Returns why the last attempt that failed did so; empty: none has failed.
  const std::string& last_failure() const { return last_failure_; }

 private:
  struct Attempt {
    Target target;
    HandshakeSocket socket;
    bool is_over = false;
  };

  bool HasPlace() const;
  Result<void> AdvanceHandshake(Attempt& attempt, TimePoint now);
  Result<void> Retry(Target target, int error_number, std::string_view why, TimePoint now);

  const KeyRing& keys_;
  const DescriptorNeed need_;
  SocketTable& table_;
  std::deque<Target> waiting_;   // by not_before
  std::list<Attempt> attempts_;  // in progress
  std::string last_failure_;
};

}  // namespace rankrun::comm::tcp
