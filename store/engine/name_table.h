#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/engine/engine_names.h"
#include "store/engine/sip_hash.h"

namespace rankrun::store::engine {

// Hash table of names by key. A look-up among thousands of names is dominated
// by cache misses. Therefore a bucket points at its first name directly, unlike
// in std::unordered_map, and the first cache line of a name holds all compared
// fields.
// Thread: one at a time.
class NameTable {
 public:
  NameTable();
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  ~NameTable() { Clear(); }

  Name* Find(std::string_view key) const;  // null if missing
  // Returns the name, and whether it is new.
  std::pair<Name*, bool> FindOrAdd(std::string&& key);
  void Erase(Name& name);
  void Clear();

  size_t size() const { return size_; }

  // Visits all names, in no order. `visit` must not change the table.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Name* name : buckets_) {
      for (; name != nullptr; name = name->next) visit(*name);
    }
  }

 private:
  size_t HashOf(std::string_view key) const { return SipHash(hash_key_, key); }
  Name*& BucketOf(size_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  void Resize(size_t buckets);

  static constexpr size_t kMinBuckets = 16;

  // Random, so that a client cannot choose keys that share a bucket.
  SipKey hash_key_;
  // Heads of the buckets' lists; owns the names. Their number is a power of
  // two, between one and eight times the number of names.
  std::vector<Name*> buckets_ = std::vector<Name*>(kMinBuckets);
  size_t size_ = 0;
};

}  // namespace rankrun::store::engine
