#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/distributed.h>

#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/stores/meeting_file.h"
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

// Identifies a world among all worlds of a rank, which several programs may make, one after the
// other.
struct WorldNumber {
  std::string context = {};  // empty: that of Init
  int generation = 0;        // number of worlds before
};

// Place of this process in the job, and the store in which the ranks meet.
struct Meeting {
  Environment place = {};
  WorldNumber world = {};
  // Set if this rank serves the store; shared with other contexts that meet at the
  // same port. Declared before `store`, its client.
  std::shared_ptr<store::HostedServer> server = {};
  std::unique_ptr<store::Store> store = {};
  std::optional<MeetingFile> file = {};  // that `store` is in
  std::optional<int> store_rank = {};    // global rank that serves the store, if one does
  std::string host = {};                 // this rank's address for the others
  std::string key_prefix = {};           // of the world's keys
};

// Returns the prefix of all keys of that world.
std::string WorldPrefix(const Environment& place, const WorldNumber& world);

// Finds the place of this process, connects to the store and claims the rank
// there. The generation is at least that of `world`; it is higher if earlier programs of this
// rank have made worlds in that store (LeaveTo). Rank 0 also serves the store if no agent does:
// with env://, and with tcp:// at another port than that of the agent's store. The other ranks
// then wait until it serves this world, not the one before.
// Errors: kInvalid, wrong options or environment, or another process has the
// rank; kPeerLost, the store cannot be reached; kTimeout, it serves no such
// world; those of Server::Listen.
Result<Meeting> Meet(const InitOptions& options, const WorldNumber& world, const GetVariable& get,
                     const DeathWatch& deaths);

// Publishes that this rank has left all worlds before `next`, so that another program may make
// that one as the same rank. Best effort.
void LeaveTo(const WorldNumber& next, const Environment& place, store::Store& store);

// Returns whether the process of that rank has claimed it.
bool HasCome(const Meeting& meeting, int global_rank);

}  // namespace rankrun::comm
