#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/roll_call.h"
#include "store/store.h"

namespace rankrun::comm {

// A sequence of barriers over the keys of a store, each with one verdict that
// all ranks share: either every rank passes, or every rank is told the same
// list of missing ones. Whoever comes last, runs out of time or refuses first
// settles the verdict, for which all others wait.
//
//   <prefix>/<n>/arrived/<rank>   set by each rank as it comes
//   <prefix>/<n>/count            how many have
//   <prefix>/<n>/verdict          "ok", who is missing, or a refusal; written once
//
// Thread: one at a time.  Lifetime: `store` outlives it.
class StoreBarrier {
 public:
  // `rank` among `names`, which are what the ranks are called in messages.
  StoreBarrier(store::Store& store, std::string prefix, int rank, std::vector<int> names);

  // Waits until every rank has called Pass as often as this one. Whether it
  // passes or not, the next call is the next barrier.
  // Errors: kTimeout, with all missing ranks in the text, or the first of them; kCancelled when a
  // rank has died, as the store's DeathWatch says; kProtocol when it fails; what
  // another rank has told with Refuse.
  Result<void> Pass(std::chrono::milliseconds timeout, bool name_all = true);

  // In place of Pass, from which all others then get `told`. Does not wait.
  // Nothing is told after another verdict, or if the store fails.
  void Refuse(const Error& told);

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
  Result<std::string> SettleByRoll(const Round& round);
  Result<std::string> Settle(uint64_t number, const std::string& verdict);
  Result<void> DeleteKeysBefore(uint64_t number);

  store::Store& store_;
  const std::string prefix_;
  const int rank_;
  const std::vector<int> names_;
  uint64_t next_ = 0;
  uint64_t first_kept_ = 0;  // rank 0 only: keys of barriers before are deleted
};

}  // namespace rankrun::comm
