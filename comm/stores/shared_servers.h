#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/stores/own_server.h"

namespace rankrun::comm {

// Store servers that several parts of this process share, by port: contexts that
// meet there, and TcpStores with `multi_tenant`. A server ends with the last
// OwnServer::server that points to it. Then its port is free.
// Thread: any.
class SharedServers {
 public:
  static SharedServers& OfThisProcess();

  // Returns the shared server at the port; starts one if there is none, and for
  // port 0.
  // Errors: those of ServeStore; kInvalid if the shared server listens on
  // loopback only and `host` is not on loopback, or the other way round.
  Result<OwnServer> At(const std::string& host, uint16_t port);

  // Starts a shared server on a bound TCP socket, which it takes over.
  // Errors: those of ServeStoreOn; kInvalid, with the descriptor unchanged, if
  // there already is a shared server with that port.
  Result<OwnServer> On(int listen_fd);

 private:
  using Key = uint16_t;  // a port
  struct Entry {
    OwnServer own;
    int users = 0;
  };

  OwnServer Use(const Key& key) REQUIRES(mutex_);
  Result<OwnServer> AddAndUse(OwnServer own) REQUIRES(mutex_);
  void Leave(const Key& key);

  Mutex mutex_;
  std::map<Key, Entry> servers_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm
