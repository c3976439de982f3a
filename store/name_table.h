#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/engine_names.h"

namespace rankrun::store::engine {

// Names by their keys. Of a look-up among thousands most is waiting for memory:
// a bucket leads to its name at once, and not by way of another one as in
// std::unordered_map, and the name's first line has all that is compared.
// Thread: one at a time.
class NameTable {
 public:
  NameTable() = default;
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  ~NameTable() { Clear(); }

  Name* Find(std::string_view key) const;  // null if there is none
  // And whether it is new.
  std::pair<Name*, bool> FindOrAdd(std::string&& key);
  void Erase(Name& name);
  void Clear();

  size_t size() const { return size_; }

  // In no order. `visit` may not change the table.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const Name* name : buckets_) {
      for (; name != nullptr; name = name->next) visit(*name);
    }
  }

 private:
  Name*& BucketOf(size_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  void Resize(size_t buckets);

  static constexpr size_t kFewestBuckets = 16;

  // A power of two of them, between a name each and an eighth of it; owns the names.
  std::vector<Name*> buckets_ = std::vector<Name*>(kFewestBuckets);
  size_t size_ = 0;
};

}  // namespace rankrun::store::engine
