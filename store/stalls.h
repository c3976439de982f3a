#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "store/engine.h"

namespace rankrun::store {

// The connections whose last request is half here, and since when nothing
// worth mentioning came of it: a client that sends a byte now and then counts
// as stalled. Each call costs the same, however many there are. Pure.
// Thread: one at a time.
class Stalls {
 public:
  // What must come within `patience`, unless the request ends before.
  static constexpr size_t kProgressBytes = 4096;

  explicit Stalls(Duration patience) : patience_(patience) {}

  // `bytes` more came, and the request is not complete.
  void Progress(ConnectionId id, size_t bytes, TimePoint now);
  // The request is complete, or the connection is gone.
  void Forget(ConnectionId id);
  void Clear();

  // Those that have stalled, which are forgotten.
  std::vector<ConnectionId> TakeStalled(TimePoint now);
  // When the next one will have; nothing if none is half.
  std::optional<TimePoint> NextDeadline() const;

 private:
  struct Half {
    ConnectionId id;
    TimePoint since;
    size_t bytes;  // since then
  };

  const Duration patience_;
  std::list<Half> halves_;  // by `since`, the oldest first
  std::unordered_map<ConnectionId, std::list<Half>::iterator> places_;
};

}  // namespace rankrun::store
