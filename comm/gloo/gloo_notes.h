#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/operation.h"

namespace rankrun::comm {

// What each rank has called, by group rank; empty: not known.
using Calls = std::vector<std::string>;

// "ranks 0, 2 called AllReduce #12 (16 x float32, sum); rank 1 called Barrier
// #12", by global ranks.
std::string DescribeCalls(const Calls& calls, const std::vector<int>& global_ranks);

// What the ranks of a group tell each other through the store while something
// is wrong: nothing of it is written as long as all goes well.
//
//   <prefix>/note        why the group has ended, by who found it first
//   <prefix>/in/<rank>   which operation that rank is in, of slow ones
//
// Best effort: without the store errors say less.
// Thread: any.  Lifetime: the store of `config` outlives it.
class Notes {
 public:
  explicit Notes(const BackendConfig& config);

  // Of several, the first is kept. kMismatch, kInvalid and kCancelled keep their code.
  void Leave(const Error& why);
  std::optional<Error> Find();

  // The error when the connection of `peer` is gone: why may be told in a moment,
  // for which it waits.
  Error LostPeer(int peer, const std::string& why);

  // For an operation that takes long: tells the others of it, and looks what
  // they say. What does not fit together becomes the note.
  std::optional<Error> Compare(const Operation& operation);

 private:
  store::Store& Store();  // under mutex_
  std::string ReadNow(const std::string& key);
  std::optional<Error> FindNow();
  void LeaveNow(const Error& why);
  std::string InKey(int group_rank) const;

  store::Store& shared_store_;
  const std::string prefix_;
  const std::vector<int> global_ranks_;
  const int group_rank_;
  const DeathWatch deaths_;
  std::mutex mutex_;
  std::unique_ptr<store::Store> own_store_;  // once needed: the shared one may be in a long wait
  uint64_t told_number_ = 0;                 // of the operation that is at our key
  std::optional<TimePoint> difference_seen_;
};

}  // namespace rankrun::comm
