#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "base/address_range.h"
#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun::store {

struct AdmissionLimits {
  // From where connections are taken; empty: from everywhere.
  std::vector<AddressRange> allowed;
  size_t connections = 65'536;
  // Of these, how many that have not said anything yet one address may have.
  // PyTorch 1.13 opens two connections per client and leaves one silent.
  size_t silent_per_address = 16'384;
};

// Who may connect to a server, by where from and by how many there are. Pure.
// Thread: one at a time.
class Admission {
 public:
  explicit Admission(AdmissionLimits limits);

  // Counts one more connection, silent so far, from `peer`.
  // Errors, with nothing counted: kInvalid, why it is refused.
  Result<void> Enter(const SocketAddress& peer);
  // The same for whoever may turn out to be no client, whatever its address is:
  // that is to be looked at once it is known.
  Result<void> EnterUnknown(const SocketAddress& peer);
  // The connection said its first word.
  void Speak(const SocketAddress& peer);
  // `silent`: without having spoken.
  void Leave(const SocketAddress& peer, bool silent);

  // From now on, connections are taken from these ranges; empty: from everywhere.
  void Allow(std::vector<AddressRange> ranges);
  // Errors: kInvalid for an address from which no connection is taken.
  Result<void> CheckAddress(const SocketAddress& peer) const;

  size_t connections() const { return connections_; }

 private:
  AdmissionLimits limits_;
  std::set<AddressBytes> single_;  // of limits_.allowed, which has the others
  size_t connections_ = 0;
  std::map<AddressBytes, size_t> silent_;  // never 0
};

}  // namespace rankrun::store
