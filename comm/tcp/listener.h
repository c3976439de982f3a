#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/net/socket_address.h"
#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm::tcp {

// Sockets at which this rank accepts connections, one for each interface that
// `config` names, or one at the host.
struct Listeners {
  uint32_t interfaces = 0;                    // number that `config` names
  std::vector<Fd> sockets = {};               // non-blocking
  std::vector<SocketAddress> addresses = {};  // of the sockets; IPv6 with a scope if it needs one
};

// Listens at ephemeral ports. An interface or host with several addresses is
// represented by the first to which a socket can be bound.
// Errors: kInvalid for too many interfaces, kExhausted, kSystem.
Result<Listeners> Listen(const BackendConfig& config);

}  // namespace rankrun::comm::tcp
