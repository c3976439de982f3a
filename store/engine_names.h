#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rankrun::store {

// Whose request it is. The caller numbers its connections and uses no number
// twice.
using ConnectionId = uint64_t;

}  // namespace rankrun::store

// What the engine keeps of keys, queues, waits and watches.
namespace rankrun::store::engine {

struct Name;
struct Wait;
struct Waiter {
  Wait* wait;
  size_t slot;  // in wait->slots
};
using Waiters = std::list<Waiter>;
// What few names have besides a value.
struct Extras {
  Waiters waiters;     // WAITs; none while the name has a value
  Waiters at_barrier;  // BARRIERs, which wait for more than a value
  std::list<std::string> queue;
  std::list<ConnectionId> watchers;
  bool empty() const {
    return waiters.empty() && at_barrier.empty() && queue.empty() && watchers.empty();
  }
};
// A name is here as long as it has a value or is waited for, watched or queued
// at. It stays where it is. What a look-up needs comes first.
struct Name {
  Name* next = nullptr;  // in its bucket
  size_t hash = 0;
  std::string key = {};
  std::optional<std::string> value = {};
  std::unique_ptr<Extras> extras = {};  // null: none
};

// Where a wait stands in the list of one of its names.
struct Slot {
  Name* name;  // null once it has come
  Waiters::iterator place;
};
// One WAIT or BARRIER that is not fulfilled yet.
struct Wait {
  ConnectionId connection;
  bool is_barrier;
  size_t missing = 0;  // slots whose name has not come
  std::vector<Slot> slots = {};
  std::list<Wait>::iterator self = {};  // in the list of its connection
};

// Where a watch stands in the list of its name.
struct Watch {
  Name* name;
  std::list<ConnectionId>::iterator place;
};

}  // namespace rankrun::store::engine
