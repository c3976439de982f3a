#include "store/engine/name_table.h"

#include "base/check.h"
#include "base/random_bytes.h"

namespace rankrun::store::engine {
namespace {

Name* FindFrom(Name* name, size_t hash, std::string_view key) {
  while (name != nullptr && (name->hash != hash || name->key != key)) name = name->next;
  return name;
}

}  // namespace

NameTable::NameTable() { RANKRUN_CHECK(FillRandom(hash_key_), "no random bytes"); }

Name* NameTable::Find(std::string_view key) const {
  size_t hash = HashOf(key);
  return FindFrom(buckets_[hash & (buckets_.size() - 1)], hash, key);
}

std::pair<Name*, bool> NameTable::FindOrAdd(std::string&& key) {
  size_t hash = HashOf(key);
  if (Name* found = FindFrom(BucketOf(hash), hash, key)) return {found, false};
  if (size_ == buckets_.size()) Resize(2 * size_);
  Name*& bucket = BucketOf(hash);
  bucket = new Name{.next = bucket, .hash = hash, .key = std::move(key)};
  size_ += 1;
  return {bucket, true};
}

void NameTable::Erase(Name& name) {
  Name** link = &BucketOf(name.hash);
  while (*link != &name) {
    RANKRUN_CHECK(*link != nullptr, "a name that is not in its table");
    link = &(*link)->next;
  }
  *link = name.next;
  delete &name;
  size_ -= 1;
  if (buckets_.size() > kMinBuckets && size_ < buckets_.size() / 8) {
    Resize(buckets_.size() / 2);
  }
}

void NameTable::Clear() {
  for (Name*& bucket : buckets_) {
    while (bucket != nullptr) delete std::exchange(bucket, bucket->next);
  }
  buckets_ = std::vector<Name*>(kMinBuckets);
  size_ = 0;
}

void NameTable::Resize(size_t buckets) {
  std::vector<Name*> old(buckets);
  old.swap(buckets_);
  for (Name* name : old) {
    while (name != nullptr) {
      Name*& bucket = BucketOf(name->hash);
      Name* next = std::exchange(name->next, bucket);
      bucket = std::exchange(name, next);
    }
  }
}

}  // namespace rankrun::store::engine
