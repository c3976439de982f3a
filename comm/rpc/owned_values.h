#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include <rankrun/future.h>

#include "base/mutex.h"
#include "base/result.h"

namespace rankrun::comm::rpc {

// Value that a worker owns and others refer to.
struct ValueId {
  int32_t creator;  // worker that has asked for it
  uint64_t number;  // of its values

  friend bool operator<(const ValueId& a, const ValueId& b) {
    return std::tie(a.creator, a.number) < std::tie(b.creator, b.number);
  }
};

// Hold of one worker on a value. The worker that passes a reference on makes the hold of the
// receiver, so that a reference that arrives is held already.
struct HoldId {
  int32_t holder;
  int32_t issuer;
  uint64_t number;  // of the issuer's holds

  friend bool operator<(const HoldId& a, const HoldId& b) {
    return std::tie(a.holder, a.issuer, a.number) < std::tie(b.holder, b.issuer, b.number);
  }
};

// Values of this worker. A value is freed with its last hold.
// Thread: any. No value is freed under a lock.
class OwnedValues {
 public:
  using Value = std::shared_ptr<void>;

  // Makes a value, which is not there yet, with its first hold. Error: kInvalid, there is one.
  Result<Promise<Value>> Make(const ValueId& id, const HoldId& hold) EXCLUDES(mutex_);
  // Error: kInvalid, there is none, or no more.
  Result<void> Hold(const ValueId& id, const HoldId& hold) EXCLUDES(mutex_);
  Result<Future<Value>> Find(const ValueId& id) const EXCLUDES(mutex_);
  // End holds. A hold that is not there is none.
  void Drop(const ValueId& id, const HoldId& hold) EXCLUDES(mutex_);
  void DropAllOf(int holder) EXCLUDES(mutex_);

  size_t size() const EXCLUDES(mutex_);

 private:
  struct Entry {
    Promise<Value> promise;
    std::set<HoldId> holds;
  };
  using Entries = std::map<ValueId, Entry>;

  mutable Mutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::rpc
