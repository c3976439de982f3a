#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::store {

// Identifies the connection of a request. The caller never reuses a number.
using ConnectionId = uint64_t;

}  // namespace rankrun::store

// The engine's records of keys, queues, waits and watches.
namespace rankrun::store::engine {

struct Name;
struct Wait;
struct Waiter {
  Wait* wait;
  size_t slot;  // in wait->slots
};
using Waiters = std::list<Waiter>;
// Parts that only few names have.
struct Extras {
  Waiters waiters;     // WAITs; empty while the name has a value
  Waiters at_barrier;  // BARRIERs, which wait for an arrival count
  std::list<std::string> queue;
  std::list<ConnectionId> watchers;
  bool empty() const {
    return waiters.empty() && at_barrier.empty() && queue.empty() && watchers.empty();
  }
};
// A name exists while it has a value, a queue, waits or watches. Its address
// never changes. The fields that a look-up reads come first, so that they share
// a cache line.
struct Name {
  Name* next = nullptr;  // in its bucket
  size_t hash = 0;
  std::string key = {};
  std::optional<std::string> value = {};
  std::unique_ptr<Extras> extras = {};  // null if all parts are empty
};

// Position of a wait in the list of one of its names.
struct Slot {
  Name* name;  // null once that name exists
  Waiters::iterator place;
};
// A WAIT or BARRIER that is not fulfilled yet.
struct Wait {
  ConnectionId connection;
  bool is_barrier;
  size_t missing = 0;  // number of slots whose name does not exist yet
  std::vector<Slot> slots = {};
  std::list<Wait>::iterator self = {};  // in the list of its connection
};

// Position of a watch in the list of its name.
struct Watch {
  Name* name;
  std::list<ConnectionId>::iterator place;
};

}  // namespace rankrun::store::engine
