#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"

namespace rankrun::store {

// Elementary change of a KeyTable. The numbers are part of the FileStore's log
// format.
struct Change {
  enum class Kind : uint8_t { kSet = 1, kAppend = 2, kDelete = 3, kPush = 4, kPop = 5 };
  Kind kind;
  std::string key;
  std::string value = {};  // empty for kDelete and kPop

  bool operator==(const Change&) const = default;
};

// Scope of a look-up of a name: the keys, the queues, or both.
enum class LookupScope { kKeys, kQueues, kBoth };

// The keys, queues and waits of a store whose data is in this process.
// TableStore builds the client operations on it.
// Thread: one at a time. The mutex that guards the table also belongs to the
// condition of each Watch.
class KeyTable {
 public:
  class Watch;

  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;  // watches point to it
  KeyTable& operator=(const KeyTable&) = delete;

  // Applies `change` and ends the watches for a name that it creates. Deleting
  // a missing key and popping from an empty queue change nothing.
  void Apply(const Change& change);

  const std::string* Find(std::string_view key) const;  // null if missing
  const std::string* QueueFront(std::string_view key) const;
  size_t QueueLength(std::string_view key) const;
  bool Has(std::string_view key, LookupScope scope) const;

  size_t size() const { return keys_.size(); }  // number of keys, without queues
  std::vector<std::string> Keys() const;

 private:
  void Wake(const std::string& key, LookupScope scope);

  std::map<std::string, std::string, std::less<>> keys_;
  std::map<std::string, std::deque<std::string>, std::less<>> queues_;  // without empty queues
  std::unordered_multimap<std::string, Watch*> watches_;
};

// Waits for names to be created. A created name stays counted even if it is
// deleted while others are still missing.
// Thread: one at a time, as the table.  Lifetime: within that of the table.
class KeyTable::Watch {
 public:
  Watch(KeyTable& table, std::span<const std::string> keys, LookupScope scope);
  Watch(const Watch&) = delete;  // the table points to it
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  bool complete() const { return missing_ == 0; }
  std::vector<std::string> Missing() const;
  CondVar& completed() { return completed_; }

 private:
  friend class KeyTable;

  KeyTable& table_;
  const LookupScope scope_;
  std::vector<std::string> keys_;  // names that were missing at construction
  size_t missing_ = 0;             // number of entries in table_.watches_
  CondVar completed_;
};

}  // namespace rankrun::store
