#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "store/hosted_server.h"
#include "store/store.h"

namespace rankrun {
class Store;
}

namespace rankrun::comm {

// What is behind a public Store of any kind, so that no kind has members that
// programs would depend on.
struct StoreState {
  static StoreState& Of(rankrun::Store& store);

  std::atomic<std::chrono::milliseconds> timeout;
  std::string name = {};                             // host, path or prefix
  std::unique_ptr<store::HostedServer> server = {};  // TcpStore, if it is the server
  uint16_t port = 0;                                 // TcpStore
  std::shared_ptr<rankrun::Store> underlying = {};   // PrefixStore; owned with the program
  std::unique_ptr<store::Store> store = {};          // before the two above: it uses them
};

// A server of `host`'s, on loopback only if that is it, else on all addresses.
// Errors: those of HostedServer::Start.
Result<std::unique_ptr<store::HostedServer>> ServeStore(const std::string& host, uint16_t port);

// Throws DistError for a time-out below 0.
std::chrono::milliseconds CheckedTimeout(std::chrono::milliseconds timeout);

}  // namespace rankrun::comm
