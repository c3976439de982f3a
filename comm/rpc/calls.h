#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/rpc/outcome.h"

namespace rankrun::comm::rpc {

// Calls of this worker that have not ended. Each ends once.
// Thread: any. Ends of calls run in the thread that causes them.
class Calls {
 public:
  using End = std::function<void(Outcome)>;

  // Returns the id of a new call to worker `callee`.
  uint64_t Begin(int callee, TimePoint deadline, End end) EXCLUDES(mutex_);
  // Ends a call. Does nothing if it has ended.
  void Finish(uint64_t id, Outcome outcome) EXCLUDES(mutex_);
  // Ends the calls to one worker, or all, with this outcome.
  void FinishAllTo(int callee, const Outcome& outcome) EXCLUDES(mutex_);
  void FinishAll(const Outcome& outcome) EXCLUDES(mutex_);
  // Ends the calls whose deadline has passed. Returns the next deadline.
  TimePoint FinishLate(TimePoint now) EXCLUDES(mutex_);

  // Number of calls under way, until their ends have returned.
  size_t open() const EXCLUDES(mutex_);
  uint64_t begun() const EXCLUDES(mutex_);

 private:
  using Deadlines = std::multimap<TimePoint, uint64_t>;
  struct Call {
    int callee;
    TimePoint began;
    End end;
    Deadlines::iterator deadline;
  };
  using Table = std::unordered_map<uint64_t, Call>;

  Call Take(Table::iterator call) REQUIRES(mutex_);
  void RunEnd(Call& call, Outcome outcome) EXCLUDES(mutex_);
  void FinishThose(const std::function<bool(const Call&)>& wanted, const Outcome& outcome)
      EXCLUDES(mutex_);

  mutable Mutex mutex_;
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  size_t ending_ GUARDED_BY(mutex_) = 0;  // calls with an end that runs now
  Table calls_ GUARDED_BY(mutex_);
  Deadlines deadlines_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::rpc
