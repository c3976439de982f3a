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
#include "comm/gloo/gloo_control.h"
#include "comm/operation.h"

namespace rankrun::comm {

// What each rank has called, by group rank; empty: not known.
using Calls = std::vector<std::string>;

// "ranks 0, 2 called AllReduce #12 (16 x float32, sum); rank 1 called Barrier
// #12", by global ranks.
std::string DescribeCalls(const Calls& calls, const std::vector<int>& global_ranks);

// What the ranks of a group tell each other while something is wrong: a farewell
// before they close their connections, and through the store, of which nothing
// is written as long as all goes well:
//
//   <prefix>/note        why the group has ended, by who found it first
//   <prefix>/in/<rank>   which operation that rank is in, of slow ones
//
// Best effort: without the store errors say less.
// Thread: any.  Lifetime: the store of `config` and `control` outlive it.
class Notes {
 public:
  Notes(const BackendConfig& config, Control& control);

  // Of several, the first is kept. Found as kSystem, unless it is kMismatch,
  // kCancelled or kPeerLost.
  void Leave(const Error& why);
  std::optional<Error> Find();

  // Tells all other ranks why this one closes its connections.
  void SayFarewell(const Error& why);
  void SayFarewellOnLeaving();

  // The error when the connection of `peer` is gone, as was found at `since`:
  // nothing as long as the reason may still come.
  std::optional<Error> WhyLost(int peer, const std::string& why, TimePoint since);

  // For an operation that takes long: tells the others of it, and looks what
  // they say. What does not fit together becomes the note.
  std::optional<Error> Compare(const Operation& operation);

 private:
  std::optional<Error> FarewellFor(int peer);
  bool Tell(const Operation& operation);  // under mutex_, as all that follow
  void ReadWords(const Operation& operation);
  bool HasStore();  // connects, if need be
  void GiveUpStore();
  std::string ReadNow(const std::string& key);
  std::optional<Error> FindNow();
  void LeaveNow(const Error& why);
  std::string InKey(int group_rank) const;

  store::Store& shared_store_;
  Control& control_;
  const std::string prefix_;
  const std::vector<int> global_ranks_;
  const int group_rank_;
  const DeathWatch deaths_;
  std::mutex mutex_;
  std::unique_ptr<store::Store> own_store_;  // once needed: the shared one may be in a long wait
  TimePoint next_connect_ = {};
  uint64_t told_number_ = 0;  // of the operation that is at our key
  Calls calls_;               // in it, as far as they have been read
  std::optional<TimePoint> difference_seen_;
};

}  // namespace rankrun::comm
