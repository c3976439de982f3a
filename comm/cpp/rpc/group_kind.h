#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/result.h"
#include "comm/rpc/member_list.h"
#include "comm/world/open_group.h"
#include "store/store.h"

// Keeps workers of a static group and those of a dynamic one, which meet in the same store,
// from waiting for each other.
//
//   <prefix>/static          number of workers of a static group
//   <prefix>/static_worker   one of them: the number of its barrier and its name
//   <prefix>/static_<n>/...  barrier of the workers that call Init for the nth time
namespace rankrun::rpc {

// Worker of a static group.
struct StaticWorker {
  std::string name;
  int rank;
  int world_size;
};

// Says in a store that this worker is one of a static group, until it is destroyed.
// Thread: one at a time.
class StaticMark {
 public:
  explicit StaticMark(comm::OpenPlace place)
      : prefix_(place.key_prefix), list_(std::move(place.store), place.key_prefix) {}
  StaticMark(const StaticMark&) = delete;
  StaticMark& operator=(const StaticMark&) = delete;
  ~StaticMark() { Remove(); }

  // Waits for the other workers. Errors: those of StoreBarrier::Pass; kInvalid, at once, if
  // the store has a dynamic group.
  Result<void> Enter(const StaticWorker& worker, std::chrono::milliseconds timeout);
  // Deletes the keys of the barrier, which all have left.
  void Tidy();
  void Remove();  // as the destructor

 private:
  // Error: kInvalid, the store has a dynamic group.
  Result<void> CheckNotDynamic(const StaticWorker& worker);
  void Withdraw();

  const std::string prefix_;
  comm::rpc::MemberList list_;  // that of a dynamic group, with this one's store
  std::string barrier_ = {};    // prefix of its keys
  int world_size_ = 0;
  bool is_marked_ = false;
};

// Fails if the store has a static group, whose workers then fail, too, if they still wait.
// Called before and after `name` is on the list of the dynamic group. Error: kInvalid.
Result<void> RefuseStatic(store::Store& store, const std::string& prefix, const std::string& name);

}  // namespace rankrun::rpc
