#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace rankrun::comm::rpc {

struct Worker {
  int id;
  std::string name;

  bool operator==(const Worker&) const = default;
};

// Error: kInvalid for a name that is empty, has 128 characters or more or others than letters,
// digits, '-', '_' and ':'. Pure.
Result<void> CheckWorkerName(const Worker& worker);

// Workers of RPC, with different ids and names.
// Thread: any.
class Roster {
 public:
  // Error: kInvalid for a wrong name, or if another worker has the name or the id.
  Result<void> Add(const Worker& worker) EXCLUDES(mutex_);
  void Remove(int id) EXCLUDES(mutex_);

  // Errors: kInvalid, "there is no worker c: want a, b".
  Result<Worker> Find(std::string_view name) const EXCLUDES(mutex_);
  Result<Worker> Find(int id) const EXCLUDES(mutex_);
  std::vector<Worker> All() const EXCLUDES(mutex_);  // by id

 private:
  std::string Known() const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<int, std::string> names_ GUARDED_BY(mutex_);
  std::map<std::string, int, std::less<>> ids_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::rpc
