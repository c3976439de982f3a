#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/core/calls.h"
#include "comm/core/operation.h"
#include "comm/gloo/control.h"

namespace rankrun::comm::gloo {

// Exchange of failures between the ranks of a group: farewells before a rank
// closes its connections, and two kinds of keys in the store. Nothing is
// written to the store as long as operations are fast and succeed.
//
//   <prefix>/note        first error that ended the group
//   <prefix>/in/<rank>   operation that this rank is in, if it is slow
//
// Best effort: without the store, error texts have fewer details.
// Thread: any.  Lifetime: the store of `config` and `control` outlive it.
class FailureBoard {
 public:
  FailureBoard(const BackendConfig& config, Control& control);

  // Publishes the error that ended the group; only the first one is recorded.
  // Readers get kMismatch, kCancelled or kPeerLost unchanged, all other codes
  // as kSystem.
  void PublishNote(const Error& why);
  std::optional<Error> ReadNote();

  // Sends all other ranks the reason for which this rank closes its
  // connections.
  void SendFarewell(const Error& why);
  void SendFarewellOnLeaving();

  // Records that this rank has the result of a call, unless the farewell of a rank has arrived
  // that has failed in it, or before: then returns that failure.
  std::optional<Error> Conclude(uint64_t call);

  // Returns the error for the connection to `peer`, lost at `since`. No value:
  // the reason may still arrive; call again.
  std::optional<Error> WhyLost(int peer, const std::string& why, TimePoint since);

  // Returns why the group has failed since `since`, if it has: the farewell of any rank,
  // or the loss of one without a farewell.
  std::optional<Error> FindFailure(TimePoint since);

  static constexpr uint64_t kAllCalls = UINT64_MAX;
  // Returns the failure, in that call or before, that any rank has reported in its farewell.
  std::optional<Error> FailureIn(uint64_t call);

  // Publishes a slow operation and compares it with those of the other ranks.
  // Returns the note, if any; a mismatch becomes the note.
  std::optional<Error> Compare(const Operation& operation);

 private:
  std::optional<Error> FailureOf(int peer);
  Error LostError(int peer, const std::string& why) const;
  bool PublishCall(const Operation& operation) REQUIRES(mutex_);
  void ReadCalls(const Operation& operation) REQUIRES(mutex_);
  bool HasStore() REQUIRES(mutex_);  // connects on first use
  void GiveUpStore() REQUIRES(mutex_);
  std::string ReadKey(const std::string& key) REQUIRES(mutex_);
  std::optional<Error> ReadNoteLocked() REQUIRES(mutex_);
  void PublishNoteLocked(const Error& why) REQUIRES(mutex_);
  std::string InKey(int group_rank) const;

  store::Store& shared_store_;
  Control& control_;
  const std::string prefix_;
  const std::vector<int> global_ranks_;
  const int group_rank_;
  const DeathWatch deaths_;
  std::atomic<uint64_t> concluded_ = 0;  // last call whose result this rank has
  Mutex mutex_;
  // Opened on first use; the shared connection may be in a long wait.
  std::unique_ptr<store::Store> own_store_ GUARDED_BY(mutex_);
  TimePoint next_connect_ GUARDED_BY(mutex_) = {};
  uint64_t published_number_ GUARDED_BY(mutex_) = 0;  // operation at the key of this rank
  CallsByRank calls_ GUARDED_BY(mutex_);              // calls read for that operation
  std::optional<TimePoint> difference_seen_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::gloo
