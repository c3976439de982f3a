#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/distributed.h>

#include "base/death_watch.h"
#include "base/result.h"
#include "comm/environment.h"
#include "store/hosted_server.h"
#include "store/store.h"

namespace rankrun::comm {

// Where an init method says that the ranks meet. A value.
struct InitMethod {
  enum class Scheme { kEnvironment, kTcp, kFile };

  Scheme scheme = Scheme::kEnvironment;
  std::string host = {};
  uint16_t port = 0;
  std::string path = {};
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
};

// "env://", "tcp://host:port?rank=0&world_size=2", "file:///path?rank=...".
// Errors: kInvalid, quoting what is wrong.
Result<InitMethod> ParseInitMethod(const std::string& url);

// This process's place in the job, and the store where the others are met.
struct Meeting {
  Environment place = {};
  // Before the store, which may be its client.
  std::unique_ptr<store::HostedServer> server = {};  // if this rank serves the store
  std::unique_ptr<store::Store> store = {};
  std::string host = {};  // this rank's address for the others
};

// Finds the place and connects to the store, or serves it (rank 0 of tcp://,
// and of env:// where no agent does).
// Errors: kInvalid for what is wrong with options or environment; kPeerLost
// when the store cannot be reached; as Server::Listen.
Result<Meeting> Meet(const InitOptions& options, const GetVariable& get, const DeathWatch& deaths);

}  // namespace rankrun::comm
