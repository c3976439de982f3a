#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/tcp/peer_address.h"

namespace rankrun::comm::tcp {

// Meeting of the ranks of a group in the store: they exchange addresses, and
// agree on whether all of them are connected.
//
//   <prefix>/address/<rank>   PeerAddress of a rank
//   <prefix>/addresses        number of ranks that have published theirs
//   <prefix>/ready            "all" when all have, or "failed" when one has given up;
//                             ranks wait for this one key, because waits for the keys of
//                             all would cost the store the square of their number
//   <prefix>/good             number of ranks that are connected to all others
//   <prefix>/good/<rank>      set when this rank is
//   <prefix>/verdict          "good", or the first complaint of a rank: the number of its
//                             ErrorCode, a space and the message
//
// Thread: one at a time.
// Errors of all functions, besides those named: kProtocol for an error of the
// store; kCancelled after a death; the complaint of another rank.
class Agreement {
 public:
  // `config` must outlive the object.
  Agreement(const BackendConfig& config, TimePoint deadline)
      : config_(config), deadline_(deadline) {}

  // Publishes the address of this rank and returns those of all, by group rank.
  // Errors: kTimeout with the missing ranks, kProtocol.
  Result<std::vector<PeerAddress>> Exchange(const PeerAddress& own);

  // Publishes the complaint of this rank, which ends ConnectAll on all ranks.
  // Returns the first complaint of all ranks.
  Error Fail(Error complaint);

  // Returns the complaint of another rank, if there is one.
  std::optional<Error> ComplaintOfOthers();

  // Declares that this rank is connected to all others and waits until all have
  // declared so. While it waits, it calls `find_loss`, which returns a complaint
  // about a peer that can no longer declare it.
  // Errors: kTimeout with the ranks that have not declared it, kPeerLost.
  Result<void> Confirm(const std::function<std::optional<Error>()>& find_loss);

  // Deletes all keys. Called once, when no rank needs them any more.
  void Forget();

  // Returns "rank 3", with the global rank.
  std::string NameOf(int rank) const;

 private:
  Result<void> Publish(const PeerAddress& own);
  Result<void> AwaitReady();
  Result<void> AwaitVerdict(const std::function<std::optional<Error>()>& find_loss);
  Result<void> Settle(const Error& complaint);
  std::vector<int> RanksWithoutKey(const std::string& folder);
  std::string Key(const std::string& name) const { return config_.key_prefix + "/" + name; }
  std::string AfterTimeout() const;
  std::chrono::milliseconds Slice() const;
  Result<std::vector<std::string>> AwaitValues(const std::vector<std::string>& keys);

  const BackendConfig& config_;
  const TimePoint deadline_;
};

// Returns why this rank waits for the others no more: a death, or is_cancelled.
std::optional<Error> EndOf(const BackendConfig& config);

}  // namespace rankrun::comm::tcp
