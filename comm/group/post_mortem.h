#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/failure_time.h"
#include "store/store.h"

namespace rankrun::comm {

// Reports that the ranks of a broken group exchange through the store, so that
// the error of every rank names the first cause, not only its consequence. Best
// effort: without the store, texts have fewer details.
//
//   <prefix>/failed/<rank>   operation in which this rank failed
//   <prefix>/first_failure   first failure of all ranks, with its time and rank
//
// Thread: one at a time.  Lifetime: `store` outlives it.
class PostMortem {
 public:
  // `names` are the numbers of the ranks in messages; `rank` is this rank's
  // index.
  PostMortem(store::Store& store, std::string prefix, int rank, std::vector<int> names);

  // Publishes that this rank failed in `operation`.
  void Report(const std::string& operation);

  // Waits up to `grace` after a time-out until all ranks have reported. Returns
  // the ranks without a report ("no report from rank 2"), and each rank's
  // operation if they differ; empty: neither. Does not wait once `is_ending`, which another
  // thread may set.
  std::string CompareReports(std::chrono::milliseconds grace, const std::atomic<bool>& is_ending);

  // Waits up to `patience` for another rank's first failure, then publishes
  // `cause` as the first one. Returns another rank's first failure, "rank 1: ...";
  // no value: there is none.
  std::optional<TimedText> FirstFailure(const std::string& cause,
                                        std::chrono::milliseconds patience);

 private:
  // Returns whether the store has answered.
  bool AwaitReports(const std::vector<std::string>& keys, std::chrono::milliseconds grace,
                    const std::atomic<bool>& is_ending);
  std::string Named(const std::vector<int>& ranks) const;
  std::string ReportKey(int rank) const;

  store::Store& store_;
  const std::string prefix_;
  const int rank_;
  const std::vector<int> names_;
};

}  // namespace rankrun::comm
