#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "store/engine/engine.h"

namespace rankrun::store {

// Connections with an incomplete request, and the time of their last progress.
// A client that sends a byte now and then counts as stalled. The cost of each
// call does not depend on their number. Pure.
// Thread: one at a time.
class Stalls {
 public:
  // Bytes that must arrive within the time-out, unless the request is complete
  // before.
  static constexpr size_t kProgressBytes = 4096;

  explicit Stalls(Duration timeout) : timeout_(timeout) {}

  // Records that `bytes` arrived and the request is still incomplete.
  void Progress(ConnectionId id, size_t bytes, TimePoint now);
  // Removes the connection, because its request is complete or it has closed.
  void Forget(ConnectionId id);
  void Clear();

  // Removes and returns the stalled connections.
  std::vector<ConnectionId> TakeStalled(TimePoint now);
  // Returns the time at which the next connection will have stalled; nothing if
  // no request is incomplete.
  std::optional<TimePoint> NextDeadline() const;

 private:
  struct Half {
    ConnectionId id;
    TimePoint since;
    size_t bytes;  // received since then
  };

  const Duration timeout_;
  std::list<Half> halves_;  // ordered by `since`, the oldest first
  std::unordered_map<ConnectionId, std::list<Half>::iterator> places_;
};

}  // namespace rankrun::store
