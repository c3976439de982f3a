#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rankrun::store {

// The smallest step by which a KeyTable changes. The numbers are those of the
// log of a FileStore.
struct Change {
  enum class Kind : uint8_t { kSet = 1, kAppend = 2, kDelete = 3, kPush = 4, kPop = 5 };
  Kind kind;
  std::string key;
  std::string value = {};  // empty for kDelete and kPop

  bool operator==(const Change&) const = default;
};

// Where a wait looks for a name: among the keys, the queues, or both.
enum class Among { kKeys, kQueues, kBoth };

// The keys and queues of a store whose data is in this process, and who waits
// for them. What a client may ask is put together from this in TableStore.
// Thread: one at a time; a Watch's condition goes with the mutex that the owner
// of the table guards it by.
class KeyTable {
 public:
  class Watch;

  KeyTable() = default;
  KeyTable(const KeyTable&) = delete;  // watches refer to it
  KeyTable& operator=(const KeyTable&) = delete;

  // Deleting a key that does not exist and popping from an empty queue change
  // nothing. What comes into existence ends the watches for it.
  void Apply(const Change& change);

  const std::string* Find(std::string_view key) const;  // null if there is none
  const std::string* QueueFront(std::string_view key) const;
  size_t QueueLength(std::string_view key) const;
  bool Has(std::string_view key, Among among) const;

  size_t size() const { return keys_.size(); }  // of keys, queues not counted
  std::vector<std::string> Keys() const;

 private:
  void Wake(const std::string& key, Among where);

  std::map<std::string, std::string, std::less<>> keys_;
  std::map<std::string, std::deque<std::string>, std::less<>> queues_;  // none is empty
  std::unordered_multimap<std::string, Watch*> watches_;
};

// Waits for names to come into existence. Each counts as come from then on,
// also when it goes again while others are still missing.
// Thread: one at a time, as the table.  Lifetime: within that of the table.
class KeyTable::Watch {
 public:
  Watch(KeyTable& table, std::span<const std::string> keys, Among among);
  Watch(const Watch&) = delete;  // the table refers to it
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  bool complete() const { return missing_ == 0; }
  std::vector<std::string> Missing() const;
  std::condition_variable& completed() { return completed_; }

 private:
  friend class KeyTable;

  KeyTable& table_;
  const Among among_;
  std::vector<std::string> keys_;  // those that were missing at first
  size_t missing_ = 0;             // entries in table_.watches_
  std::condition_variable completed_;
};

}  // namespace rankrun::store
