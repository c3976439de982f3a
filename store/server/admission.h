#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "base/net/address_range.h"
#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun::store {

struct AdmissionLimits {
  // Ranges of addresses that may connect. Empty: all addresses.
  std::vector<AddressRange> allowed;
  size_t connections = 65'536;
  // Limit of connections from one address that have not sent a byte yet.
  // PyTorch 1.13 opens two connections per client and sends nothing on one.
  size_t silent_per_address = 16'384;
  // Limit of connections from one address for which no node has vouched yet. Each may hold
  // 64 KiB.
  size_t unvouched_per_address = 2'048;
};

// Decides which connections a server accepts, by address and by number. Pure.
// Thread: one at a time.
class Admission {
 public:
  explicit Admission(AdmissionLimits limits);

  // Counts a new connection from `peer` that has sent nothing yet.
  // Errors, with nothing counted: kInvalid, with the reason of the refusal.
  Result<void> Enter(const SocketAddress& peer);
  // Does the same without checking the address, for a connection that may not
  // be a client. Call CheckAddress once it is known to be one.
  Result<void> EnterUnknown(const SocketAddress& peer);
  // Records that a connection from `peer` has sent its first bytes.
  void MarkActive(const SocketAddress& peer);
  // Counts a connection from `peer`, also counted otherwise, for which no node has vouched
  // yet. Errors: as those of Enter.
  Result<void> EnterUnvouched(const SocketAddress& peer);
  void LeaveUnvouched(const SocketAddress& peer);
  // Removes a connection. `silent`: it never sent a byte.
  void Leave(const SocketAddress& peer, bool silent);

  // Replaces the allowed ranges. Empty: all addresses.
  void Allow(std::vector<AddressRange> ranges);
  // Errors: kInvalid if `peer` is in none of the allowed ranges.
  Result<void> CheckAddress(const SocketAddress& peer) const;

  bool is_limited() const { return !limits_.allowed.empty() || !single_.empty(); }
  size_t connections() const { return connections_; }

 private:
  AdmissionLimits limits_;
  std::set<AddressBytes> single_;  // single addresses; limits_.allowed has the ranges
  size_t connections_ = 0;
  // connections that have sent nothing, by address; never 0
  std::map<AddressBytes, size_t> silent_;
  std::map<AddressBytes, size_t> unvouched_;  // the same of those
};

}  // namespace rankrun::store
