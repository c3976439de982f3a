#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "store/store.h"

namespace rankrun::comm {

// What the ranks of a broken group tell each other through the store, so that
// all of them can name the cause and not only what hit them. Best effort: a
// store that is gone makes the texts shorter, never an error.
//
//   <prefix>/failed/<rank>   what that rank was doing when it failed
//   <prefix>/first_failure   the first failure of all, with its rank
//
// Thread: one at a time.  Lifetime: `store` outlives it.
class PostMortem {
 public:
  // `rank` among `names`, which are what the ranks are called in messages.
  PostMortem(store::Store& store, std::string prefix, int rank, std::vector<int> names);

  // Tells the others that this rank failed in `operation`.
  void Report(const std::string& operation);

  // For after a time-out: waits up to `grace` until all ranks have reported,
  // then says who has not ("no word from rank 2"), or else, when they were
  // not in the same operation, who was where. Empty if there is nothing to say.
  std::string CompareNotes(std::chrono::milliseconds grace);

  // Offers `cause` as the first failure, after having waited up to `patience`
  // for another rank's. Returns that of another rank if there is one, else
  // nothing.
  std::string FirstFailure(const std::string& cause, std::chrono::milliseconds patience);

 private:
  std::string Named(const std::vector<int>& ranks) const;
  std::string ReportKey(int rank) const;

  store::Store& store_;
  const std::string prefix_;
  const int rank_;
  const std::vector<int> names_;
};

}  // namespace rankrun::comm
