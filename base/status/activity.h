#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/private_api.h"
#include "base/status/activity_table.h"
#include "base/status/flight_recorder.h"
#include "base/status/ticks.h"

namespace rankrun {

class StatusPage;

// Place of a process group on this worker's status page, freed by the
// destructor, and in its flight recorder. Entering and completing an operation
// make no system call. They do nothing without a page or without a free place,
// and in a process that was forked since the construction.
// Thread: one at a time.
class Activity {
 public:
  // `page` must outlive this object, or is null. The name is truncated to
  // kGroupNameBytes.
  Activity(const StatusPage* page, std::string_view group_name, int size);
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  ~Activity();

  // Whether an operation is recorded as a collective in memory of the CPU. The recorder
  // has others from elsewhere.
  enum class Recording { kYes, kNo };
  // Whether the caller of an operation waits for its end. If not, a thread of librankrun carries
  // it out, and the program waits for it only while ShowWaiting says so.
  enum class Caller { kWaits, kGoesOn };
  void Enter(const ActivityRecord& record, Recording recording = Recording::kYes,
             Caller caller = Caller::kWaits, uint64_t now = Ticks());
  // Marks the last entered operation as over.
  void Complete(bool has_succeeded = true);
  // Says whether threads of the program wait for operations of Caller::kGoesOn. Thread: any.
  void ShowWaiting(bool waits);

  // For operations that are not collectives. Thread: any.
  const FlightRecorder& recorder() const { return recorder_; }

 private:
  GroupSlot* slot_ = nullptr;
  uint32_t forks_ = 0;  // ForkCount() of its process
  FlightRecorder recorder_;
};

// Beginnings of the texts of processes that wait because of a breakpoint.
constexpr std::string_view kDebuggerWait = "a debugger at the breakpoint ";
constexpr std::string_view kUserWait = "the user at the breakpoint ";
constexpr std::string_view kBreakpointWait = "the end of the breakpoint of rank ";
bool IsBreakpointWait(std::string_view what);

// Shows on the page that this process waits for something other than an
// operation of a group: "key init/3 of the store". With several threads, shows
// the first wait.
class Awaited {
 public:
  // `global_rank`: the one for which it waits; -1: none, or any.
  Awaited(const StatusPage* page, std::string_view what, int global_rank = -1);
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;
  ~Awaited();

 private:
  AwaitedSlot* slot_ = nullptr;
};

// Says on the page that the program uses a part of librankrun without a group: RPC, or the store
// of the agent. A worker that is idle in these may sleep for long.
class LibraryUse {
 public:
  RANKRUN_PRIVATE_API explicit LibraryUse(const StatusPage* page);  // may be null
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;
  RANKRUN_PRIVATE_API ~LibraryUse();

 private:
  uint32_t* users_ = nullptr;
  uint32_t forks_ = 0;  // ForkCount() of its process
};
bool ReadLibraryUse(const StatusPage& page);

// Activity of a group, read from its page.
struct GroupActivity {
  std::string name;
  int size;
  ActivityRecord last;     // last entered operation
  uint64_t completed;      // number of the last completed operation
  bool is_under_way;       // `last` is in progress
  Duration since_entered;  // time since `last` was entered
  Duration unawaited{};    // the part of it in which no thread of the program waited for the end

  Duration awaited_for() const { return since_entered - unawaited; }
  // Whether a thread of the program waits for the end of `last`.
  bool is_awaited() const {
    return is_under_way && (unawaited == Duration::zero() || unawaited < since_entered);
  }
};

// Reads the page while its writer may be changing it or may have died. Skips a
// slot that does not come to rest.
std::vector<GroupActivity> ReadGroups(const StatusPage& page);

// Returns "AllReduce #12 (16 x float32, sum)".
std::string DescribeOperation(const ActivityRecord& record);

// A wait that Awaited shows.
struct AwaitedActivity {
  std::string what = {};  // empty: there is none
  int global_rank = -1;
  Duration lasted{};
};
AwaitedActivity ReadAwaited(const StatusPage& page);

// Activity of a worker: the operation of the group that entered last ("in
// AllReduce #12 (16 x float32, sum) of world"), or another wait ("waiting for
// key init/3 of the store"), which takes precedence. Empty: neither.
struct WorkerActivity {
  std::string what = {};
  Duration lasted{};
};
WorkerActivity ReadActivity(const StatusPage& page);

}  // namespace rankrun
