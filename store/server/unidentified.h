#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/net/socket_address.h"

namespace rankrun::store {

struct UnidentifiedLimits {
  size_t in_all = 1024;
  size_t per_network = 64;
  // Time that a connection has before another one may take its place.
  Duration chance = std::chrono::milliseconds(100);
};

// Returns `limits` for a process with a limit of open files: an eighth of the
// files at most is for strangers.
UnidentifiedLimits WithinOpenFiles(UnidentifiedLimits limits);

// Connections whose peers have not identified themselves yet. Because they cost
// a stranger nothing, their number is limited, in all and for each network (an
// IPv4 address, or the /64 of an IPv6 address). When there is no room, a new
// connection replaces the oldest of the network with the most, so that honest
// peers, which identify themselves within milliseconds, get through. Pure.
// Thread: one at a time.
class Unidentified {
 public:
  explicit Unidentified(UnidentifiedLimits limits) : limits_(limits) {}

  // Counts connection `id`. Larger ones count as younger. Returns the connection to close: nothing
  // if there is room, an earlier one that had its chance, or `id`, which is then not counted.
  std::optional<uint64_t> Enter(uint64_t id, const SocketAddress& peer, TimePoint now);
  // Forgets a connection that is identified or closed; unknown ones are ignored.
  void Leave(uint64_t id);

  struct Oldest {
    uint64_t id;
    TimePoint since;
  };
  // Returns the connection that entered first; nothing if there is none.
  std::optional<Oldest> oldest() const;
  size_t size() const { return networks_.size(); }

 private:
  struct Since {
    AddressBytes network;
    TimePoint begin;
  };

  const UnidentifiedLimits limits_;
  std::map<AddressBytes, std::set<uint64_t>> connections_;  // of each network; never empty
  std::map<uint64_t, Since> networks_;                      // of each connection
};

}  // namespace rankrun::store
