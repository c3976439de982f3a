#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/private_api.h"
#include "base/result.h"
#include "base/roll_call.h"
#include "store/store.h"

namespace rankrun::comm {

// Sequence of barriers over the keys of a store. Each barrier has one verdict
// for all ranks: either every rank passes, or every rank gets the same list of
// missing ranks. The rank that arrives last, times out or refuses first records
// the verdict, for which all others wait.
//
//   <prefix>/<n>/count            number of ranks that have arrived
//   <prefix>/<n>/arrived/<rank>   set by each rank that waits for others
//   <prefix>/<n>/verdict          "ok", the missing ranks, or a refusal; written once
//
// Thread: one at a time, but End.  Lifetime: `store` outlives it.
class StoreBarrier {
 public:
  // `names` are the numbers of the ranks in messages; `rank` is this rank's
  // index.
  RANKRUN_PRIVATE_API StoreBarrier(store::Store& store, std::string prefix, int rank,
                                   std::vector<int> names);

  // Waits until every rank has called Pass as often as this one. The next call
  // is the next barrier, whatever the result.
  // Errors: kTimeout with all missing ranks, or only the first of them;
  // kCancelled if the store's DeathWatch reports a death; kProtocol if the
  // store fails; the error that another rank has passed to Refuse.
  RANKRUN_PRIVATE_API Result<void> Pass(std::chrono::milliseconds timeout, bool name_all = true);

  // Replaces Pass on this rank; Pass of all other ranks then returns `reason`.
  // Does not wait. Has no effect after another verdict, or if the store fails.
  // Returns the refusal that the other ranks get: that of the first rank.
  RANKRUN_PRIVATE_API Error Refuse(const Error& reason);
  // Ends Pass on all ranks with `reason`, for the barrier in which this rank waits and for the
  // next one. Uses `store`, another client, because Pass may have this object's. Thread: any.
  void End(store::Store& store, const Error& reason) const;
  // Returns whether the next barrier is known to have failed: another rank has
  // refused it, or has timed out there.
  bool HasFailed();

 private:
  struct Round {
    uint64_t number;
    TimePoint since;
    TimePoint deadline;
    bool name_all;
  };

  int world_size() const { return static_cast<int>(names_.size()); }
  std::string ArrivedKey(uint64_t number, int rank) const;
  std::string CountKey(uint64_t number) const;
  std::string VerdictKey(uint64_t number) const;
  Result<std::string> Verdict(const Round& round);
  Result<RollCall> CallRoll(const Round& round);
  Result<std::string> RecordRollCall(const Round& round);
  Result<std::string> RecordVerdict(uint64_t number, const std::string& verdict);
  Result<void> DeleteKeysBefore(uint64_t number);

  store::Store& store_;
  const std::string prefix_;
  const int rank_;
  const std::vector<int> names_;
  std::atomic<uint64_t> next_ = 0;
  uint64_t first_kept_ = 0;  // rank 0 only: keys of earlier barriers are deleted
};

}  // namespace rankrun::comm
