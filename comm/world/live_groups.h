#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/home_process.h"
#include "comm/group/group.h"
#include "comm/group/store_barrier.h"

namespace rankrun::comm {

// Returns the barrier in which all ranks of the world meet to make a group.
std::shared_ptr<StoreBarrier> MakeMeetings(const GroupIdentity& world, store::Store& store);

// The groups of one table that Abort may end while other threads use or destroy them.
// Thread: any.
class LiveGroups {
 public:
  // The world comes first, and goes last. Ends the group if the world was aborted meanwhile.
  void Add(const ProcessGroup& handle, Group& group);
  // Waits for each Abort under way. Afterwards, none uses the group.
  void Remove(const ProcessGroup& handle);
  // Those of the world; null: it has had none.
  void SetMeetings(std::shared_ptr<StoreBarrier> meetings);

  // Ends the calls of the group; those of all groups, if it is the world. `how`: Group::End's.
  // Errors: kInvalid, the group is destroyed (kNotFound), or this process is a fork.
  Result<void> Abort(const ProcessGroup& handle, const std::string& how);
  // Returns the error of later calls on the world, if it was aborted.
  std::optional<Error> WorldAborted();

 private:
  struct Entry {
    const ProcessGroup* handle;
    Group* group;
  };
  struct State {
    Mutex mutex;
    CondVar changed;
    std::vector<Entry> entries GUARDED_BY(mutex);
    std::shared_ptr<StoreBarrier> meetings GUARDED_BY(mutex);
    std::string world_ended_by GUARDED_BY(mutex);  // `how` of Abort; empty: by none
    int aborts GUARDED_BY(mutex) = 0;              // under way
  };
  struct Ends {
    std::vector<Group*> groups;  // the world first
    bool is_world;
    std::shared_ptr<StoreBarrier> meetings;  // of the world; may be null
  };

  Result<void> CheckInherited(const ProcessGroup& handle);
  static std::optional<Ends> Take(State& state, const ProcessGroup& handle, const std::string& how);

  PerProcess<State> state_;
};

}  // namespace rankrun::comm
