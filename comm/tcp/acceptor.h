#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/tcp/handshake_socket.h"
#include "comm/tcp/listener.h"
#include "comm/tcp/socket.h"
#include "comm/tcp/socket_table.h"

namespace rankrun::comm::tcp {

constexpr size_t kMaxUnidentified = 64;
// Time in which a peer must prove that it is a rank.
constexpr std::chrono::seconds kIdentificationTime{5};
// Time that a peer has in any case, even if others wait for its place.
constexpr std::chrono::milliseconds kMinIdentificationTime{100};

// Accepts the connections of higher ranks. Any program may connect, so the
// number of unidentified connections and their time is bounded; when all places
// are taken, the oldest connection is closed for a new one.
// Thread: one at a time.
class Acceptor {
 public:
  struct Context {
    const Listeners& listeners;
    const KeyRing& keys;
    DescriptorNeed need;
    uint32_t own_rank;
  };

  // `table` and the referents of `context` must outlive the object. It stores
  // authenticated sockets in `table`.
  Acceptor(const Context& context, SocketTable& table) : context_(context), table_(table) {}

  // Appends the descriptors and events to poll for.
  void AddPollEntries(std::vector<pollfd>& entries, TimePoint now) const;

  // Returns when to call Advance next, even without an event.
  TimePoint NextDeadline(TimePoint now) const;

  // Handles the events of the entries that AddPollEntries has appended, and
  // closes late connections. Errors: kExhausted.
  Result<void> Advance(std::span<const pollfd> entries, TimePoint now);

 private:
  struct Unidentified {
    HandshakeSocket socket;
    TimePoint since;
    bool is_over = false;
  };

  bool HasPlace(TimePoint now) const;
  void AdvanceHandshake(Unidentified& connection);
  void RemoveFinished(TimePoint now);
  Result<void> AcceptFrom(int listener_fd, TimePoint now);

  const Context context_;
  SocketTable& table_;
  std::list<Unidentified> unidentified_;  // oldest first
};

}  // namespace rankrun::comm::tcp
