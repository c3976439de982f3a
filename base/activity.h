#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/activity_table.h"
#include "base/clock.h"

namespace rankrun {

class StatusPage;

// A process group's place on this worker's status page, freed at the end.
// Entering and completing an operation cost no system call, and nothing at all
// without a page or with no place left on it.
// Thread: one at a time.
class Activity {
 public:
  // `page` outlives it, or is null. The name is cut to kGroupNameBytes.
  Activity(const StatusPage* page, std::string_view group_name, int size);
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  ~Activity();

  void Enter(const ActivityRecord& record);
  // What was entered last is over, well or badly.
  void Complete();

 private:
  GroupSlot* slot_ = nullptr;
};

// Says on the page that this process waits for something that is no operation
// of a group, "key init/3 of the store": of several threads, the first one.
class Awaited {
 public:
  Awaited(const StatusPage* page, std::string_view what);
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;
  ~Awaited();

 private:
  AwaitedSlot* slot_ = nullptr;
};

// A group, as its page shows it.
struct GroupActivity {
  std::string name;
  int size;
  ActivityRecord last;     // entered
  uint64_t completed;      // number
  bool is_under_way;       // `last` is
  Duration since_entered;  // that long ago
};

// Reads what the writer may be changing, or have been killed while it changed;
// a slot that does not come to rest is left out.
std::vector<GroupActivity> ReadGroups(const StatusPage& page);

// What a worker is in: the operation of the group that entered last, "in
// AllReduce #12 (16 x float32, sum) of world". Or "waiting for key init/3 of the
// store", which says more if there are both. Empty: neither.
struct WorkerActivity {
  std::string what = {};
  Duration lasted{};
};
WorkerActivity ReadActivity(const StatusPage& page);

}  // namespace rankrun
