#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/status/activity.h"
#include "comm/core/home_process.h"
#include "comm/stores/meeting_file.h"
#include "store/server/hosted_server.h"
#include "store/store.h"

namespace rankrun {
class Store;
}

namespace rankrun::comm {

// State behind a public Store of any kind. It keeps the members of the classes
// out of the public headers.
struct StoreState {
  static StoreState& Of(rankrun::Store& store);
  // Returns a client of the data of any store. It holds a store of a derived class.
  // Errors: those of Clone.
  static Result<std::unique_ptr<store::Store>> ClientOf(
      const std::shared_ptr<rankrun::Store>& store, std::chrono::milliseconds timeout);
  static std::shared_ptr<rankrun::Store> MakeStore(std::unique_ptr<StoreState> state);

  const HomeProcess home = {};
  std::atomic<std::chrono::milliseconds> timeout;
  std::string name = {};  // host, path or prefix
  // Server of a TcpStore that serves; owners: the TcpStores that share it.
  std::shared_ptr<store::HostedServer> server = {};
  uint16_t port = 0;                                // of a TcpStore
  std::unique_ptr<LibraryUse> use = {};             // of the agent's store
  std::shared_ptr<rankrun::Store> underlying = {};  // of a PrefixStore and some clones; shared
  std::shared_ptr<FileUser> file = {};  // of a FileStore with a world size, and its clones
  // Null in a derived class. Last, because it uses `server`, `underlying` or `file`.
  std::unique_ptr<store::Store> store = {};
};

// Returns `timeout`. Throws DistError if it is below 0.
std::chrono::milliseconds CheckedTimeout(std::chrono::milliseconds timeout);

}  // namespace rankrun::comm
