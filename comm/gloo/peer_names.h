#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace rankrun::comm {

// An address of this rank's side of the connection to `peer`.
struct PeerAddress {
  int peer;
  std::string address;
};

// Finds the rank behind a socket address in Gloo's messages. Each connection
// has its own address on each side, and the accepting side may learn that of
// the other from the kernel only; so each rank writes down in the store, once,
// which addresses it has, and whoever has a message to translate looks there.
//
//   <prefix>/names/<rank>   lines "<peer> <address>"
//
// Thread: one at a time.  Lifetime: `store` outlives it.
class PeerNames {
 public:
  PeerNames(store::Store& store, std::string prefix, int global_rank, int world_size);

  Result<void> Publish(const std::vector<PeerAddress>& addresses);

  // "lost rank 2: Connection closed by peer" for what Gloo says as
  // "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [::1]:4711".
  // An address that nobody has published stays.
  std::string Translate(std::string text);

 private:
  std::string Key(int global_rank) const;
  std::optional<int> Find(const std::string& address);

  store::Store& store_;
  const std::string prefix_;
  const int global_rank_;
  const int world_size_;
};

}  // namespace rankrun::comm
