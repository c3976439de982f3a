#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/distributed.h>

#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/world/environment.h"
#include "store/server/hosted_server.h"
#include "store/store.h"

namespace rankrun::comm {

// Parsed init method: where the ranks meet. A value.
struct InitMethod {
  enum class Scheme { kEnvironment, kTcp, kFile };

  Scheme scheme = Scheme::kEnvironment;
  std::string host = {};
  uint16_t port = 0;
  std::string path = {};
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
};

// Parses "env://", "tcp://host:port?rank=0&world_size=2" or
// "file:///path?rank=...".
// Errors: kInvalid, with a quotation of the wrong part.
Result<InitMethod> ParseInitMethod(const std::string& url);

// Place of this process in the job, and the store in which the ranks meet.
struct Meeting {
  Environment place = {};
  // Set if this rank serves the store. Declared before `store`, its client.
  std::unique_ptr<store::HostedServer> server = {};
  std::unique_ptr<store::Store> store = {};
  std::string host = {};  // this rank's address for the others
};

// Finds the place of this process and connects to the store. Rank 0 also serves
// the store with tcp://, and with env:// if no agent does.
// Errors: kInvalid, wrong options or environment; kPeerLost, the store cannot
// be reached; those of Server::Listen.
Result<Meeting> Meet(const InitOptions& options, const GetVariable& get, const DeathWatch& deaths);

}  // namespace rankrun::comm
